#!/usr/bin/env python3
"""Adds up a column of a CSV file:  total.py FILE COLUMN [WHERE=VALUE ...]"""

import csv
import sys
from pathlib import Path

if len(sys.argv) < 3:
    sys.exit(__doc__)
path, column, *conditions = sys.argv[1:]
wanted = [condition.partition("=")[::2] for condition in conditions]
with Path(path).open(newline="") as file:
    rows = [row for row in csv.DictReader(file) if all(row[key] == value for key, value in wanted)]
print(f"{len(rows)} rows, {column} adds up to {sum(float(row[column]) for row in rows):g}")

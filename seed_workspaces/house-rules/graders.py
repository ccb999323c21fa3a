"""How the answers of the three families are scored, with words that say what was wrong.

`grade` is named in manifest.yaml. The words are all that an engine learns from.
"""

import json
import random
import sqlite3
import time

CITIES = ["Aarhus", "Bergen", "Cork", "Ghent", "Lyon", "Porto", "Turku", "Utrecht"]
PRODUCTS = ["chair", "desk", "drawer", "lamp", "rug", "shelf", "stool", "table"]

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, deleted INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, product TEXT, amount INTEGER,
                     status INTEGER, day TEXT, deleted INTEGER);
"""

ROWS = 20242769
"""Seeds the rows: with these, no question is answered rightly by forgetting a house rule."""
QUERY_SECONDS = 2.0
MOST_ROWS = 200
# What a query may do: read tables and call functions. Writing, ATTACH, PRAGMA: all is denied.
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}


def grade(task, output, expected):
    """A score from 0 to 1 and what was expected and seen."""
    family = task.metadata["category"]
    return {"dates": grade_date, "sql": grade_sql, "orders": grade_order}[family](output, expected)


def grade_date(output, expected):
    seen = output.strip()
    if seen == expected:
        return 1.0, f"{expected} is right"
    return 0.0, f"expected {expected!r}, got {seen[:200]!r}"


# Questions that are answered by a query.


def grade_sql(output, expected):
    """Right when both queries give the same rows; their order counts where expected orders them."""
    query = output.strip()
    connection = database()
    wanted = rows_of(connection, expected)
    try:
        seen = rows_of(connection, query)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        return 0.0, f"expected: {expected!r}, but your query fails ({error}): {query[:400]!r}"
    finally:
        connection.close()
    if "ORDER BY" not in expected:
        wanted, seen = sorted(wanted, key=repr), sorted(seen, key=repr)
    if seen == wanted:
        return 1.0, f"gives the right rows: {shown(wanted)}"
    return 0.0, (
        f"expected: {expected!r}, which gives {shown(wanted)}, "
        f"but your query {query[:400]!r} gives {shown(seen)}"
    )


def database():
    """The shop's database in memory, always the same rows, open for reading only."""
    rng = random.Random(ROWS)
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    for number in range(1, 41):
        row = (number, f"customer {number}", rng.choice(CITIES), int(rng.random() < 0.25))
        connection.execute("INSERT INTO customers VALUES (?, ?, ?, ?)", row)
    for number in range(1, 401):
        day = f"2024-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        row = (number, rng.randint(1, 40), rng.choice(PRODUCTS), rng.randint(900, 89_999))
        row += (rng.choice([1, 2, 3, 4]), day, int(rng.random() < 0.2))
        connection.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
    connection.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY
    )
    return connection


def rows_of(connection, query):
    """The rows of one query, numbers rounded to cents. Raises ``sqlite3.Error`` for what is refused
    or takes too long, ``ValueError`` for too many rows."""
    deadline = time.monotonic() + QUERY_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    found = connection.execute(query).fetchmany(MOST_ROWS + 1)
    if len(found) > MOST_ROWS:
        raise ValueError(f"more than {MOST_ROWS} rows")
    return [tuple(round(v, 2) if isinstance(v, float) else v for v in row) for row in found]


def shown(rows):
    """Rows in few words; a single value without brackets."""
    if not rows:
        return "no rows"
    if len(rows) == 1 and len(rows[0]) == 1:
        return repr(rows[0][0])
    return repr(rows[:4])[:200] + (f" and {len(rows) - 4} more rows" if len(rows) > 4 else "")


# Orders that become one JSON object.


def grade_order(output, expected):
    """The share of right fields; nothing for what is not one JSON object and only that."""
    wanted = json.loads(expected)
    try:
        seen = json.loads(output.strip())
    except (ValueError, RecursionError):
        return 0.0, f"expected {expected!r}, but this is not JSON alone: {output[:300]!r}"
    if not isinstance(seen, dict):
        return 0.0, f"expected {expected!r}, but this is not a JSON object: {output[:300]!r}"
    wrong = [key for key in wanted if key not in seen or not same(seen[key], wanted[key])]
    extra = [key for key in seen if key not in wanted]
    if not wrong and not extra:
        return 1.0, "every field is right"
    faults = [f"{key}: {json.dumps(seen[key]) if key in seen else 'missing'}" for key in wrong]
    faults += [f"{key} should not be there" for key in extra]
    score = (len(wanted) - len(wrong)) / (len(wanted) + len(extra))
    return score, f"expected {expected!r}; wrong: {'; '.join(faults)[:400]}"


def same(seen, wanted):
    """Equal in value and kind: 1 is not true, and 1.0 is not 1."""
    return json.dumps(seen, sort_keys=True) == json.dumps(wanted, sort_keys=True)

"""How an answer is scored. Return True or False, a number from 0 to 1, or a pair of that and
words. The words matter: they are what the engine learns from."""

import re


def grade(task, output, expected):
    found = re.findall(r"\bP[1-4]\b", output.upper())
    if not found:
        return 0.0, f"expected {expected}, but the answer names no priority: {output[:80]!r}"
    if found[-1] == expected:
        return 1.0, f"{expected} is right"
    distance = abs(int(found[-1][1]) - int(expected[1]))
    return (0.5 if distance == 1 else 0.0), f"expected {expected}, got {found[-1]}"

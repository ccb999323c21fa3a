"""When: the cycle, what it observes and measures, and what it decides."""

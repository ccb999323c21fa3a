"""On what an agent is measured: benchmarks give tasks and score answers."""

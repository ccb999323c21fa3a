"""Guided synthesis: failures become lessons, examples and rules in memory before anything else.

    engine: guided-synthesis            # in manifest.yaml
    engine: {name: guided-synthesis, max_examples: 12, write_rules: false}

``cases`` says what is known of a task, ``evidence`` gathers it, ``examples``, ``rules`` and
``lessons`` decide what is kept, ``memory`` reads and writes the files, ``engine`` puts them
together.
"""

from .engine import GuidedSynthesis, Options

__all__ = ["GuidedSynthesis", "Options"]

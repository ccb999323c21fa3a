"""How an edit ended, and how a model is asked again, whichever way it edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...llm import Message
from .tree import Tree


@dataclass(frozen=True, slots=True)
class Outcome:
    """The files as they are now, the model's closing words, why it ended before it was done
    (empty when it was done), and counts for the record."""

    after: Tree
    words: str
    ended: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)


def asked_again(messages: Sequence[Message], word: str) -> tuple[Message, ...]:
    """A conversation that ends with the model's turn, and ``word`` as what is said to it now.

    No provider takes back an empty turn, nor one whose tool calls were never answered: such a turn
    is left out, and the word is added to what was said before it.
    """
    *earlier, before, last = messages
    if last.content.strip() and not last.tool_calls:
        return (*earlier, before, last, Message("user", word))
    return (*earlier, replace(before, content=f"{before.content}\n\n{word}".strip()))

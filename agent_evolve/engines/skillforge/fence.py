"""Marks around text that comes from tasks, agents, tools and files, so that it can't pass for
instructions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

_LABEL = re.compile(r"[^\w .,:/()=-]+")


@dataclass(frozen=True, slots=True)
class Fence:
    """A tag that occurs in none of the texts it encloses.

    The tag is a hash of these texts: text can't hold its own hash, so nobody who writes a task can
    close the fence from inside, and the same input gives the same prompt on every run.
    """

    tag: str

    @classmethod
    def around(cls, texts: Iterable[str]) -> Self:
        """A fence for texts that are known when it is made."""
        texts = list(texts)
        digest = hashlib.sha256()
        for text in texts:
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(raw) + raw)
        tag = f"data-{digest.hexdigest()[:10]}"
        while any(tag in text for text in texts):
            digest.update(b"again")
            tag = f"data-{digest.hexdigest()[:10]}"
        return cls(tag)

    def wrap(self, text: str, label: str = "") -> str:
        """The text between its marks. A text that was not known before (a command's output) has
        the tag taken out, should it hold it. The label is reduced to plain characters."""
        label = _LABEL.sub(" ", label).strip()[:100]
        inner = text.replace(self.tag, "data-(tag)")
        end = "" if inner.endswith("\n") or not inner else "\n"
        of = f' of="{label}"' if label else ""
        return f"<{self.tag}{of}>\n{inner}{end}</{self.tag}>"

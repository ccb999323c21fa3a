"""Output of a command, kept within a size however much arrives."""

from __future__ import annotations

from collections import deque


class HeadAndTail:
    """Keeps the first and the last half of ``limit`` bytes of a stream and counts the rest.

    Memory stays below twice the limit, so a command that prints 100 MB costs no more than one
    that prints 100 kB.
    """

    def __init__(self, limit: int) -> None:
        self._head_limit = max(limit, 2) // 2
        self._tail_limit = max(limit, 2) - self._head_limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    @property
    def truncated(self) -> int:
        """Bytes that were cut out of the middle."""
        return max(0, self.total - self._head_limit - self._tail_limit)

    def text(self) -> str:
        """What was kept, decoded with replacement; says in the middle how much is missing."""
        tail = b"".join(self._tail)[-self._tail_limit :]
        if not self.truncated:
            return (bytes(self._head) + tail).decode(errors="replace")
        notice = f"\n[... {self.truncated:,} bytes cut ...]\n"
        return self._head.decode(errors="replace") + notice + tail.decode(errors="replace")

"""Which texts were seen before, at eight bytes a text."""

from __future__ import annotations

from array import array
from hashlib import blake2b

_FIRST_SLOTS = 1 << 12


class SeenTexts:
    """A set of texts that keeps 64-bit hashes only, in one open-addressed array.

    40 million texts take 1 GiB, where a set of Python integers takes four; two different texts
    among them collide with a probability of 0.00004. The hash is the same in every process.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _FIRST_SLOTS))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, text: str) -> bool:
        """Add a text; was it new?"""
        # 0 marks an empty slot.
        code = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) or 1
        slot = self._slot(code)
        if self._slots[slot]:
            return False
        self._slots[slot] = code
        self._count += 1
        if 2 * self._count > len(self._slots):
            self._grow()
        return True

    def _slot(self, code: int) -> int:
        """Where a hash stands, or the empty slot where it would."""
        slots = self._slots
        last = len(slots) - 1
        slot = code & last
        while slots[slot] not in (0, code):
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        old = self._slots
        self._slots = array("Q", bytes(2 * 8 * len(old)))
        for code in old:
            if code:
                self._slots[self._slot(code)] = code

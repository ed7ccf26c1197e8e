"""Bytes that can be looked at before they are taken, given back, and, in a file, gone back to."""

from collections.abc import Callable, Iterator

BLOCK = 1 << 20
"""Bytes asked for at once."""


class Supply:
    """A stream of bytes from position `start` of something.

    `read(position, size)` returns at most `size` bytes, b"" at the end; what cannot be read out of order (a pipe,
    inflated text) ignores the position and sets `rewindable` to False.
    """

    def __init__(self, read: Callable[[int, int], bytes], *, start: int = 0, rewindable: bool) -> None:
        self._read = read
        self._held = b""
        self._taken = 0
        self._next = start
        self.rewindable = rewindable

    @classmethod
    def over(cls, pieces: Iterator[bytes]) -> "Supply":
        """A supply of what an iterator yields; empty pieces are passed over."""

        def read(_position: int, _size: int) -> bytes:
            return next((piece for piece in pieces if piece), b"")

        return cls(read, rewindable=False)

    @property
    def position(self) -> int:
        """Where the next byte comes from."""
        return self._next - len(self._held) + self._taken

    def rewound(self, position: int) -> "Supply":
        """A second supply of the same bytes from `position`; only where `rewindable`."""
        return Supply(self._read, start=position, rewindable=True)

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end; they stay."""
        while self._at_hand < size and self._more():
            pass
        return self._held[self._taken : self._taken + size]

    def skip(self, size: int) -> None:
        """Drop `size` bytes that were seen by `peek`."""
        self._taken += size

    def block(self, size: int = BLOCK) -> bytes:
        """The next bytes, at most `size` and as many as are at hand, b"" at the end."""
        if self._taken >= len(self._held):
            self._more()
        data = self._held if not self._taken and len(self._held) <= size else self.peek(min(size, self._at_hand))
        self._taken += len(data)
        return data

    def blocks(self) -> Iterator[bytes]:
        """Everything that is left."""
        while data := self.block():
            yield data

    def give_back(self, data: bytes) -> None:
        """Put bytes that were just taken back in front."""
        self._held = data + self._held[self._taken :]
        self._taken = 0

    @property
    def _at_hand(self) -> int:
        return len(self._held) - self._taken

    def _more(self) -> bool:
        data = self._read(self._next, BLOCK)
        self._next += len(data)
        self._held = self._held[self._taken :] + data if self._at_hand else data
        self._taken = 0
        return bool(data)

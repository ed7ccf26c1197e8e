"""gzip, zlib and zip streams to text, whole or damaged: all that comes out is handed on, and the damage is told.

A stream breaks off (a killed job, a full disk) or is damaged in the middle (bytes lost on the way). igzip drops what
it inflated in the call that fails. So a file is read again from the start of the broken stream and fed byte by byte
around the break; a pipe, which cannot be read again, is fed in small steps from the beginning.
"""

from collections.abc import Generator, Iterator
from typing import Protocol, cast

from isal import igzip_lib

from torchdiag.trace.quality import QualityLog
from torchdiag.trace.supply import BLOCK, Supply

GZIP_MAGIC = b"\x1f\x8b\x08"
LONGEST_PIECE = 1 << 20
PIPE_STEP = 1 << 10
_LONGEST_HEADER = 1 << 16
_HEADER_CRC, _EXTRA, _NAME, _COMMENT, _RESERVED = 0x02, 0x04, 0x08, 0x10, 0xE0
_TRAILING_GARBAGE = "trailing-garbage"
_IsalError = cast(type[Exception], igzip_lib.IsalError)  # its stubs call the class an instance


class _Igzip(Protocol):
    """What is used of an `igzip_lib.IgzipDecompressor`."""

    eof: bool
    needs_input: bool
    unused_data: bytes
    crc: int

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _igzip(flag: int) -> _Igzip:
    return cast(_Igzip, igzip_lib.IgzipDecompressor(flag=flag))


class _BrokenError(Exception):
    """The stream cannot be followed further; the message continues "the gzip stream ..."."""

    def __init__(self, code: str, what: str) -> None:
        super().__init__(what)
        self.code = code


def gunzip(supply: Supply, quality: QualityLog) -> Iterator[bytes]:
    """The text of all members of a gzip stream (RFC 1952)."""
    return _Inflation(supply, quality, "gzip stream").gzip()


def unzlib(supply: Supply, quality: QualityLog) -> Iterator[bytes]:
    """The text of a zlib stream (RFC 1950)."""
    return _Inflation(supply, quality, "zlib stream").zlib()


def unzip_member(supply: Supply, checksum: int, quality: QualityLog) -> Iterator[bytes]:
    """The text of a deflated member of a zip archive, whose directory gives `checksum` (CRC-32)."""
    return _Inflation(supply, quality, "zip member").bare(checksum)


def looks_like_gzip(head: bytes) -> bool:
    """Whether a file that begins with `head` (3 bytes, or all it has) is gzip, maybe cut within its first bytes."""
    return bool(head) and GZIP_MAGIC.startswith(head[:3])


def looks_like_zlib(head: bytes) -> bool:
    """Whether two bytes are a zlib header without preset dictionary; no JSON begins like that."""
    return len(head) >= 2 and head[0] & 0x8F == 0x08 and not head[1] & 0x20 and (head[0] << 8 | head[1]) % 31 == 0


class _Inflation:
    """The inflating of one supply; `text_bytes` counts what came out so far."""

    def __init__(self, supply: Supply, quality: QualityLog, what: str) -> None:
        self.supply = supply
        self.quality = quality
        self.what = what
        self.text_bytes = 0
        self.origin = supply.position

    def gzip(self) -> Iterator[bytes]:
        """Members one after another; after a break, says whether another member follows."""
        try:
            more = True
            while more:
                self.origin = self.supply.position
                _skip_gzip_header(self.supply)
                before = self.text_bytes
                checksum = yield from self._stream(igzip_lib.DECOMP_GZIP_NO_HDR)
                size = (self.text_bytes - before) % (1 << 32)
                self._check(self._trailer(8), checksum.to_bytes(4, "little") + size.to_bytes(4, "little"))
                more = self._another_member()
        except _BrokenError as broken:
            self._tell(broken)

    def zlib(self) -> Iterator[bytes]:
        """One stream."""
        self.supply.skip(2)
        try:
            checksum = yield from self._stream(igzip_lib.DECOMP_ZLIB_NO_HDR)
            self._check(self._trailer(4), checksum.to_bytes(4, "big"))
        except _BrokenError as broken:
            self._tell(broken)

    def bare(self, expected: int) -> Iterator[bytes]:
        """One deflate stream without header and trailer."""
        try:
            checksum = yield from self._stream(igzip_lib.DECOMP_GZIP_NO_HDR)
            self._check(expected.to_bytes(4, "big"), checksum.to_bytes(4, "big"))
        except _BrokenError as broken:
            self._tell(broken)

    def _stream(self, flag: int) -> Generator[bytes, None, int]:
        """Yield the text of one deflate stream and return its checksum, with `supply` right behind it.

        Raises _BrokenError after the last byte that can be had, with `supply` at the break.
        """
        supply, origin, before = self.supply, self.supply.position, self.text_bytes
        step = BLOCK if supply.rewindable else PIPE_STEP
        inflater = _igzip(flag)
        while not inflater.eof:
            block = supply.block(step)
            if not block:
                raise _BrokenError("truncated-gzip", "breaks off")
            try:
                for piece in _inflated(inflater, block):
                    self.text_bytes += len(piece)
                    yield piece
            except _IsalError as error:
                supply.give_back(block)
                if supply.rewindable:
                    yield from self._salvage(flag, origin, self.text_bytes - before)
                raise _BrokenError("bad-gzip", "is damaged") from error
        supply.give_back(inflater.unused_data)
        return inflater.crc

    def _salvage(self, flag: int, origin: int, known: int) -> Iterator[bytes]:
        """Inflate again from `origin`, byte by byte from the present position on; yield what follows `known` bytes."""
        again = self.supply.rewound(origin)
        inflater = _igzip(flag)
        while block := again.block(max(1, min(BLOCK, self.supply.position - again.position))):
            try:
                for piece in _inflated(inflater, block):
                    fresh = piece[known:]
                    known -= len(piece) - len(fresh)
                    self.text_bytes += len(fresh)
                    if fresh:
                        yield fresh
            except _IsalError:
                break
        self.supply = again

    def _trailer(self, size: int) -> bytes:
        trailer = self.supply.peek(size)
        self.supply.skip(len(trailer))
        if len(trailer) < size:
            raise _BrokenError("truncated-gzip", "breaks off in its checksum")
        return trailer

    def _check(self, written: bytes, found: bytes) -> None:
        if written != found:
            self.quality.add(
                "bad-gzip",
                f"the checksum of the {self.what} is wrong: some of its text is not what was written",
                first_offset=self.text_bytes,
            )

    def _tell(self, broken: _BrokenError) -> None:
        self.quality.add(
            broken.code,
            f"the {self.what} {broken} at byte {self.supply.position:,}; {self.text_bytes:,} bytes of text came out",
            first_offset=self.text_bytes,
        )
        if broken.code == "bad-gzip":
            # A stream cut short may run on into the next one before it breaks.
            self._tell_of_lost_member(self.supply.rewound(self.origin + 1) if self.supply.rewindable else self.supply)

    def _another_member(self) -> bool:
        """Whether a member follows; padding and garbage behind the last one are told."""
        supply, end = self.supply, self.supply.position
        while ahead := supply.peek(BLOCK):
            data = ahead.lstrip(b"\0")
            supply.skip(len(ahead) - len(data))
            if data:
                break
        zeros = supply.position - end
        if looks_like_gzip(supply.peek(3)):
            return True
        if supply.peek(1):
            self._note_garbage(f"what follows the gzip stream at byte {end:,} is no gzip and was ignored")
            self._tell_of_lost_member(supply)
        elif zeros:
            self._note_garbage(f"{zeros:,} zero bytes follow the gzip stream")
        return False

    def _note_garbage(self, message: str) -> None:
        self.quality.add(_TRAILING_GARBAGE, message, first_offset=self.text_bytes)

    def _tell_of_lost_member(self, supply: Supply) -> None:
        place = _later_member(supply)
        if place is not None:
            self._note_garbage(f"another gzip stream begins at byte {place:,} and was not read")


def _inflated(inflater: "_Igzip", block: bytes) -> Iterator[bytes]:
    """What a block inflates to; one that grows a thousandfold comes out a piece at a time."""
    while True:
        piece = inflater.decompress(block, LONGEST_PIECE)
        if piece:
            yield piece
        if inflater.eof or inflater.needs_input:
            return
        block = b""


def _skip_gzip_header(supply: Supply) -> None:
    header = supply.peek(_LONGEST_HEADER)
    size = _gzip_header_size(header)
    if size > len(header):
        supply.skip(len(header))
        raise _BrokenError("truncated-gzip", "breaks off in its header")
    supply.skip(size)


def _gzip_header_size(header: bytes) -> int:
    """Bytes of the header that `header` begins with; more than it has when it is cut."""
    if len(header) < 10:
        return 10
    flags = header[3]
    if flags & _RESERVED:
        raise _BrokenError("bad-gzip", "has a damaged header")
    size = 10
    if flags & _EXTRA:
        size += 2 + int.from_bytes(header[size : size + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            end = header.find(b"\0", size)
            if end < 0:
                return len(header) + 1
            size = end + 1
    return size + 2 if flags & _HEADER_CRC else size


def _later_member(supply: Supply) -> int | None:
    """Position of the next gzip member that inflates, None when there is none."""
    while True:
        window = supply.peek(BLOCK)
        found = window.find(GZIP_MAGIC)
        if found < 0:
            supply.skip(max(0, len(window) - len(GZIP_MAGIC) + 1))
            if len(window) < BLOCK:
                return None
            continue
        supply.skip(found)
        if _inflates(supply.peek(_LONGEST_HEADER)):
            return supply.position
        supply.skip(1)


def _inflates(member: bytes) -> bool:
    """Whether these first bytes of a member give text: three equal bytes alone may be chance."""
    try:
        size = _gzip_header_size(member)
        text = _igzip(igzip_lib.DECOMP_DEFLATE).decompress(member[size:], LONGEST_PIECE)
    except (_BrokenError, _IsalError):
        return False
    return bool(text)

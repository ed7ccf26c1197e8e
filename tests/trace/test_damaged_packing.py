"""Damage to the packing of a trace costs no more text than it must, and is told."""

import contextlib
import gzip
import os
import random
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packings import TEXT, codes, read, stored, zipped

from torchdiag.trace.quality import UnreadableTraceError

MALFORMED = Path(__file__).parents[2] / ".." / "shared" / "traces" / "malformed"
LONGEST_SYMBOL = 258
"""Bytes one deflate symbol may stand for; two inflaters may differ in what they do with the last one before a cut."""


def by_small_steps(packed: bytes) -> bytes:
    """What the standard library gets out of a damaged gzip member, a byte of input at a time."""
    inflater = zlib.decompressobj(31)
    text = b""
    with contextlib.suppress(zlib.error):
        for place in range(len(packed)):
            text += inflater.decompress(packed[place : place + 1])
    return text


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_cut_gzip_yields_all_it_holds(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    packed = gzip.compress(TEXT[:9000]) + gzip.compress(TEXT[9000:])
    cut = data.draw(st.integers(0, len(packed) - 1))
    path = stored(tmp_path_factory.mktemp("cut"), packed[:cut])
    first = len(gzip.compress(TEXT[:9000]))
    held = by_small_steps(packed[:cut]) if cut <= first else TEXT[:9000] + by_small_steps(packed[first:cut])
    try:
        text, notes = read(path)
    except UnreadableTraceError:
        assert len(held) < 2
        return
    assert TEXT.startswith(text)
    assert len(held) - len(text) <= LONGEST_SYMBOL
    assert codes(notes) == ([] if cut == first else ["truncated-gzip"])
    assert all(note.first_offset == len(text) for note in notes)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_gzip_damaged_anywhere_yields_all_up_to_the_damage(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    packed = bytearray(gzip.compress(TEXT))
    place = data.draw(st.integers(10, len(packed) - 1))
    packed[place] ^= 1 << data.draw(st.integers(0, 7))
    held = by_small_steps(bytes(packed))
    path = stored(tmp_path_factory.mktemp("damaged"), bytes(packed))
    try:
        text, notes = read(path)
    except UnreadableTraceError:
        assert not held
        return
    assert held.startswith(text) or text.startswith(held)
    assert len(held) - len(text) <= LONGEST_SYMBOL
    assert set(codes(notes)) <= {"bad-gzip", "truncated-gzip", "trailing-garbage"}
    assert notes


def test_damage_far_into_a_large_stream_loses_nothing_before_it(tmp_path: Path) -> None:
    text = random.Random(2).randbytes(4_000_000).hex().encode()
    packed = bytearray(gzip.compress(text, 1))
    middle = len(packed) * 3 // 4
    packed[middle : middle + 64] = bytes(64)
    read_text, notes = read(stored(tmp_path, bytes(packed)))
    pairs = zip(read_text, text, strict=False)
    intact = next((place for place, (one, other) in enumerate(pairs) if one != other), len(read_text))
    assert intact > len(text) * 0.74
    assert "bad-gzip" in codes(notes)


def test_a_wrong_checksum_is_told_and_costs_no_text(tmp_path: Path) -> None:
    for place in (-8, -1):
        packed = bytearray(gzip.compress(TEXT))
        packed[place] ^= 1
        text, notes = read(stored(tmp_path, bytes(packed) + gzip.compress(b"more")))
        assert text == TEXT + b"more"
        assert codes(notes) == ["bad-gzip"]


def test_a_member_behind_the_damage_is_named_and_not_glued_on(tmp_path: Path) -> None:
    first = gzip.compress(random.Random(3).randbytes(40_000).hex().encode())[:20_000]
    text, notes = read(stored(tmp_path, first + gzip.compress(TEXT)))
    assert TEXT not in text
    assert codes(notes) == ["bad-gzip", "trailing-garbage"]
    assert "begins at byte 20,000 and was not read" in notes[1].message


@pytest.mark.parametrize(
    ("tail", "says"), [(b"\0" * 700, "700 zero bytes"), (b"\0\0\0garbage", "no gzip"), (b"PK", "no gzip")]
)
def test_what_follows_a_gzip_stream_is_told(tmp_path: Path, tail: bytes, says: str) -> None:
    text, notes = read(stored(tmp_path, gzip.compress(TEXT) + tail))
    assert text == TEXT
    assert codes(notes) == ["trailing-garbage"]
    assert says in notes[0].message


def test_zeros_between_members_are_passed_over(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT[:100]) + bytes(512) + gzip.compress(TEXT[100:])
    assert read(stored(tmp_path, packed)) == (TEXT, [])


def test_a_damaged_zip_member_and_zlib_stream_yield_their_beginning(tmp_path: Path) -> None:
    text, notes = read(stored(tmp_path, zlib.compress(TEXT)[:-2000]))
    assert text and TEXT.startswith(text)
    assert codes(notes) == ["truncated-gzip"]
    archive = bytearray(zipped({"trace.json": TEXT}))
    archive[3000] ^= 0xFF
    text, notes = read(stored(tmp_path, bytes(archive)))
    assert text[:100] == TEXT[:100]
    assert codes(notes) == ["bad-gzip"]


def test_damage_is_found_in_a_pipe_too(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(random.Random(4).randbytes(100_000).hex().encode()))
    packed[60_000:60_040] = b"\xff" * 40
    whole, _ = read(stored(tmp_path, bytes(packed)))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with contextlib.suppress(BrokenPipeError):
            pipe.write_bytes(bytes(packed))

    writer = threading.Thread(target=write)
    writer.start()
    text, notes = read(pipe)
    writer.join()
    assert codes(notes)[0] == "bad-gzip"
    # A pipe cannot be read again: the step of a kilobyte that failed is lost.
    assert whole.startswith(text)
    assert len(whole) - len(text) < 16_000


# Files that others damaged.


@pytest.mark.skipif(not MALFORMED.exists(), reason="the shared traces are not here")
class TestMalformed:
    def test_misleading_names(self) -> None:
        plain, gz = (read(MALFORMED / name) for name in ("gz_name_but_plain.json.gz", "plain_name_but_gz.json"))
        assert plain == gz
        assert plain[1] == []

    def test_several_members(self) -> None:
        packed = (MALFORMED / "multi_member_gzip.json.gz").read_bytes()
        assert read(MALFORMED / "multi_member_gzip.json.gz") == (gzip.decompress(packed), [])

    def test_truncated_stream(self) -> None:
        packed = (MALFORMED / "truncated_gzip_stream.json.gz").read_bytes()
        text, notes = read(MALFORMED / "truncated_gzip_stream.json.gz")
        held = by_small_steps(packed)
        assert held.startswith(text)
        assert len(held) - len(text) <= LONGEST_SYMBOL
        assert codes(notes) == ["truncated-gzip"]

    def test_empty_file(self) -> None:
        with pytest.raises(UnreadableTraceError, match=r"empty \(0 bytes\)"):
            read(MALFORMED / "empty_file.json")

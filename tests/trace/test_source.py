"""The text of a trace is the same whatever it is packed in, and what cannot be read is refused with a reason."""

import gzip
import os
import random
import resource
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packings import TEXT, codes, read, stored, zipped

from torchdiag.trace.quality import QualityLog, UnreadableTraceError
from torchdiag.trace.source import chunks

PACKED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "gzip, fastest": gzip.compress(TEXT, 1),
    "gzip, stored": gzip.compress(TEXT, 0),
    "several members": gzip.compress(TEXT[:5000]) + gzip.compress(b"") + gzip.compress(TEXT[5000:]),
    "gzip twice": gzip.compress(gzip.compress(TEXT)),
    "zlib": zlib.compress(TEXT),
    "zip": zipped({"trace.json": TEXT}),
    "zip, stored": zipped({"trace.json": TEXT}, zipfile.ZIP_STORED),
    "zip of gzip": zipped({"trace.json.gz": gzip.compress(TEXT)}),
    "zip of gzip, stored": zipped({"trace.json.gz": gzip.compress(TEXT)}, zipfile.ZIP_STORED),
    "zip with company": zipped({"__MACOSX/._trace.json": b"x", "READ ME.txt": b"x", "run/trace.json": TEXT}),
}


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace.zip", "trace"])
@pytest.mark.parametrize("form", PACKED)
def test_the_packing_changes_nothing_and_the_name_does_not_matter(tmp_path: Path, form: str, name: str) -> None:
    assert read(stored(tmp_path, PACKED[form], name)) == (TEXT, [])


@pytest.mark.parametrize("form", [form for form in PACKED if not form.startswith("zip")])
def test_standard_input_may_be_packed_too(tmp_path: Path, form: str) -> None:
    script = (
        "import sys; from torchdiag.trace.source import chunks; from torchdiag.trace.quality import QualityLog\n"
        "for piece in chunks('-', quality=QualityLog()): sys.stdout.buffer.write(piece)"
    )
    piped = subprocess.run([sys.executable, "-c", script], input=PACKED[form], capture_output=True, check=True)
    assert piped.stdout == TEXT
    with stored(tmp_path, PACKED[form]).open("rb") as file:
        redirected = subprocess.run([sys.executable, "-c", script], stdin=file, capture_output=True, check=True)
    assert redirected.stdout == TEXT


def test_a_named_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(PACKED["several members"]))
    writer.start()
    assert read(pipe) == (TEXT, [])
    writer.join()


@pytest.mark.parametrize("flags", range(32))
def test_every_optional_field_of_a_gzip_header_is_passed_over(tmp_path: Path, flags: int) -> None:
    packed = gzip.compress(TEXT)
    header = bytearray(packed[:10])
    header[3] = flags
    if flags & 4:
        header += b"\x05\x00extra"
    if flags & 8:
        header += b"trace.json\0"
    if flags & 16:
        header += b"a comment\0"
    if flags & 2:
        header += zlib.crc32(header).to_bytes(4, "little")[:2]
    assert read(stored(tmp_path, bytes(header) + packed[10:])) == (TEXT, [])


def test_pieces_are_one_to_two_megabytes(tmp_path: Path) -> None:
    text = random.Random(1).randbytes(5_000_000).hex().encode()
    for data in (text, gzip.compress(text, 1)):
        sizes = [len(piece) for piece in chunks(stored(tmp_path, data), quality=QualityLog())]
        assert sum(sizes) == len(text)
        assert all(1 << 20 <= size <= 2 << 20 for size in sizes[:-1])


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.binary(max_size=3000), max_size=6), level=st.integers(0, 9))
def test_gzip_or_not_changes_nothing(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], level: int) -> None:
    text = b"[" + b"".join(parts)
    folder = tmp_path_factory.mktemp("gzip")
    packed = gzip.compress(b"[", level) + b"".join(gzip.compress(part, level) for part in parts)
    assert read(stored(folder, packed)) == read(stored(folder, text)) == (text, [])


# What cannot be read.


def refusal(path: Path | str) -> str:
    with pytest.raises(UnreadableTraceError) as caught:
        read(path)
    return str(caught.value)


def test_what_cannot_be_opened_is_said_with_place_and_reason(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.json") == f"cannot read {tmp_path}/none.json: there is no such file in {tmp_path}"
    assert f"there is no folder {tmp_path}/nowhere" in refusal(tmp_path / "nowhere" / "none.json")
    assert "it is a directory" in refusal(tmp_path)
    assert "it is empty (0 bytes)" in refusal(stored(tmp_path, b""))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_one_may_not_read_is_said(tmp_path: Path) -> None:
    path = stored(tmp_path, TEXT)
    path.chmod(0)
    assert "you may not read it" in refusal(path)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x28\xb5\x2f\xfd" + bytes(20), "zstd -d"),
        (b"\xfd7zXZ\0" + bytes(20), "xz -d"),
        (b"BZh9" + bytes(20), "bzip2 -d"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
        (zipped({}), "holds no file"),
        (zipped({"a.json": b"{}", "b/c.json": b"{}"}), "'a.json', 'b/c.json'"),
        (zipped({"a.json": TEXT})[:-30], "zip archive is damaged"),
        (zipped({"a.json": TEXT}, zipfile.ZIP_LZMA), "unpack it first"),
        (gzip.compress(b"", mtime=0), "no text inside"),
        (gzip.compress(TEXT, mtime=0)[:12], "breaks off at byte 12"),
        (b"\x1f", "breaks off"),
        (b"\x1f\x8b\x08\xe0" + bytes(20), "damaged header"),
    ],
)
def test_what_gives_no_text_is_refused_with_advice(tmp_path: Path, data: bytes, says: str) -> None:
    path = stored(tmp_path, data)
    assert refusal(path).startswith(f"cannot read {path}: ")
    assert says in refusal(path)


def test_a_zip_from_a_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(PACKED["zip"]))
    writer.start()
    assert "save it to a file" in refusal(pipe)
    writer.join()


# Threads, memory, progress.


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "torchdiag-read"]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_consumer_that_stops_early_leaves_no_thread_and_no_file_open(tmp_path: Path) -> None:
    path = stored(tmp_path, gzip.compress(bytes(50 << 20), 1))
    open_before = open_files()
    for _ in range(5):
        pieces = chunks(path, quality=QualityLog())
        next(pieces)
        pieces.close()
    assert reading_threads() == []
    assert open_files() == open_before


def test_a_consumer_that_fails_leaves_no_thread(tmp_path: Path) -> None:
    path = stored(tmp_path, gzip.compress(bytes(50 << 20), 1))

    def consume() -> None:
        for _ in chunks(path, quality=QualityLog()):
            raise KeyError

    with pytest.raises(KeyError):
        consume()
    assert reading_threads() == []


def test_a_gzip_bomb_streams() -> None:
    script = """
import gzip, resource, sys, tempfile
from torchdiag.trace.source import chunks
from torchdiag.trace.quality import QualityLog
with tempfile.NamedTemporaryFile() as file:
    for _ in range(8):
        file.write(gzip.compress(bytes(64 << 20), 1))
    file.flush()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total = sum(len(piece) for piece in chunks(file.name, quality=QualityLog()))
print(total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout.split()
    assert int(out[0]) == 512 << 20
    assert int(out[1]) < 40_000  # kilobytes


def test_a_plain_file_streams(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(256 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(len(piece) for piece in chunks(path, quality=QualityLog())) == 256 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


@pytest.mark.parametrize("form", ["plain", "several members", "zip"])
def test_progress_counts_bytes_of_the_file(tmp_path: Path, form: str) -> None:
    told: list[tuple[int, int | None]] = []
    path = stored(tmp_path, PACKED[form])
    for _ in chunks(path, quality=QualityLog(), progress=lambda done, total: told.append((done, total))):
        pass
    assert told == sorted(told)
    assert {total for _, total in told} == {len(PACKED[form])}
    if form != "zip":
        assert told[-1][0] == len(PACKED[form])


def test_notes_appear_when_the_text_has_ended(tmp_path: Path) -> None:
    quality = QualityLog()
    pieces = chunks(stored(tmp_path, gzip.compress(TEXT)[:-2000]), quality=quality)
    next(pieces)
    time.sleep(0.05)
    assert quality.notes == []
    assert list(pieces) == []
    assert codes(quality.notes) == ["truncated-gzip"]

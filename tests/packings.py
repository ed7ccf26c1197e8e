"""Texts packed as traces come, and what is read of them."""

import io
import zipfile
from pathlib import Path

from torchdiag.trace.quality import Quality, QualityLog
from torchdiag.trace.source import chunks

TEXT = b'{"traceEvents": [' + b",\n".join(b'{"ph": "X", "ts": %d}' % (i * i) for i in range(3000)) + b"]}"


def read(path: Path | str) -> tuple[bytes, list[Quality]]:
    quality = QualityLog()
    return b"".join(chunks(path, quality=quality)), quality.notes


def codes(notes: list[Quality]) -> list[str]:
    return [note.code for note in notes]


def stored(tmp_path: Path, data: bytes, name: str = "trace.json") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as writer:
        for name, data in members.items():
            writer.writestr(name, data)
    return archive.getvalue()

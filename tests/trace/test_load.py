"""A trace from a path: the first document that has events, and a reason where there is none."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torchdiag.trace.load import load
from torchdiag.trace.quality import UnreadableTraceError


def document(*names: str, **keys: Any) -> str:
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10 * place, "dur": 1.5}
        | {"args": {"stream": 7, "correlation": place, "grid": [place, 1, 1]} if place % 2 else {}}
        for place, name in enumerate(names)
    ]
    return json.dumps({**keys, "traceEvents": events})


def stored(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(text)
    return path


def test_packed_or_not_it_is_the_same_trace(tmp_path: Path) -> None:
    plain = load(stored(tmp_path, document("a", "b", "c")))
    (tmp_path / "packed").write_bytes(gzip.compress(document("a", "b", "c").encode()))
    packed = load(tmp_path / "packed")
    assert [plain.names[code] for code in plain.name] == ["a", "b", "c"]
    np.testing.assert_array_equal(plain.ts_ns, packed.ts_ns)
    np.testing.assert_array_equal(plain.ts_ns, [0, 10_000, 20_000])
    assert plain.path == str(tmp_path / "trace.json")
    assert plain.quality == packed.quality == ()


@pytest.mark.parametrize("before", ["", document(), document() + "\n" + document()])
@pytest.mark.parametrize("after", [document("x", "y"), document("x") + document("y", "z"), document()])
def test_of_several_documents_the_first_with_events_is_read(tmp_path: Path, before: str, after: str) -> None:
    wanted = document("a", "b", "c", "d", "e", run="wanted")
    alone = load(stored(tmp_path, wanted))
    among = load(stored(tmp_path, before + wanted + after))
    assert [among.names[code] for code in among.name] == ["a", "b", "c", "d", "e"]
    for column in ("ts_ns", "dur_ns", "phase"):
        np.testing.assert_array_equal(getattr(among, column), getattr(alone, column))
    for column in ("correlation", "stream", "grid"):
        np.testing.assert_array_equal(getattr(among.args, column).rows, [1, 3])
    np.testing.assert_array_equal(among.args.correlation.values, [1, 3])
    assert [among.texts[code] for code in among.args.grid.values] == ["[1, 1, 1]", "[3, 1, 1]"]
    assert [among.tracks.tids[place] for place in among.track] == [7] * 5
    assert among.metadata["run"] == "wanted"
    assert among.document_starts == (0,)
    (note,) = among.quality
    assert note.code == "several-documents"
    assert note.count == (before + wanted + after).count("traceEvents")
    assert f"number {before.count('traceEvents') + 1}" in note.message


def test_several_empty_documents_are_one_without_events(tmp_path: Path) -> None:
    trace = load(stored(tmp_path, document() + document()))
    assert len(trace) == 0
    assert [note.code for note in trace.quality] == ["several-documents"]


def test_damage_to_the_packing_and_to_the_text_are_both_told(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(gzip.compress(document(*map(str, range(500))).encode())[:-500])
    trace = load(tmp_path / "cut")
    assert 0 < len(trace) < 500
    assert {"truncated-gzip", "truncated-json"} <= {note.code for note in trace.quality}


@pytest.mark.parametrize("text", ["", "{}", '"text"', "no trace", '{"a": 1}', "\0\0\0"])
def test_nothing_to_read_is_one_sentence_that_names_the_file(tmp_path: Path, text: str) -> None:
    path = stored(tmp_path, text)
    with pytest.raises(UnreadableTraceError, match=r"\A[^\n]+\Z") as caught:
        load(path)
    assert str(path) in str(caught.value)

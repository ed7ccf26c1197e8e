"""A repair is valid JSON, loses nothing that can be kept, changes nothing that is sound, and says what it did."""

import json
import resource
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanning import damages, decoded, of_events, repaired, rows, scanned

from torchdiag.trace.quality import UnreadableTraceError

A = '{"ph": "X", "name": "a", "ts": 5, "args": {"stream": 7, "any": [1, {"b": null}], "n": -1.50e3}}'
B = '{"ph": "X", "name": "b", "ts": 9}'


def values(*events: str) -> list[Any]:
    return [json.loads(event) for event in events]


@pytest.mark.parametrize(
    "text",
    [
        of_events(A, B),
        of_events(),
        "[" + A + "]",
        "[]",
        '{"a": 1, "traceEvents": [' + A + '], "b": [1, 2], "c": {}}',
        '{"traceEvents": null, "a": 1}',
        '{"b": {"traceEvents": 1}, "traceEvents": [{}, ' + A + ', null, 5, "x", [1]]}',
        "\ufeff" + of_events(A, B).replace(" ", "\r\n"),
        r'{"traceEvents": [{"name": "\ud83d\ude00\u0041\/"}], "\u0041": 1}',
    ],
)
def test_a_valid_trace_is_repaired_to_an_equal_value(text: str) -> None:
    out, report = repaired(text)
    assert decoded(out) == json.loads(text.removeprefix("\ufeff"))
    assert (report.mended, report.dropped, report.quality) == (0, 0, ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(
    st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=5) | JSON, max_size=5),
    st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_any_valid_trace_is_repaired_to_an_equal_value(
    events: list[Any], before: dict[str, Any], after: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    value = {**before, "traceEvents": events, **after}
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    out, report = repaired(text)
    assert decoded(out) == value
    assert (report.kept, report.mended, report.dropped) == (len(events), 0, 0)


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        ('{"name": "C:\\Users\\new"}', {"name": "C:\\Users\\new"}),
        ('{"name": "say "hello"", "ts": 1}', {"name": 'say "hello"', "ts": 1}),
        ('{"name": "a\n\x01"}', {"name": "a\n\x01"}),
        (
            '{"name": NaN, "args": {"x": [inf, N/A, None, True]}}',
            {"name": None, "args": {"x": [None, None, None, True]}},
        ),
        ('{"ts": 01, "x": 1.}', {"ts": 1, "x": 1}),
        ('{"ts": 1,, "x": [1,2,],}', {"ts": 1, "x": [1, 2]}),
        ('{"ts": 1 "x": 2}', {"ts": 1, "x": 2}),
        ('{tid": 0, pid: 1}', {"tid": 0, "pid": 1}),
        ('{"args": {"x": {"y": 1}', {"args": {"x": {"y": 1}}}),
        ('{"x": ' + "[" * 600 + "]" * 600 + "}", None),
    ],
)
def test_a_damaged_event_is_mended_with_all_its_arguments(damaged: str, expected: Any) -> None:
    out, report = repaired(of_events(A, damaged, B))
    first, middle, last = decoded(out)["traceEvents"]
    assert [first, last] == values(A, B)
    assert expected is None or middle == expected
    assert (report.kept, report.mended, report.dropped) == (2, 1, 0)
    assert report.quality


def test_bad_bytes_are_replaced() -> None:
    out, report = repaired(of_events('{"name": "a<>b"}').encode().replace(b"<>", b"\xff\xe2\x82"))
    assert decoded(out)["traceEvents"] == [{"name": "a\ufffd\ufffdb"}]
    assert damages(report) == {"bad-utf8": 1}


def test_an_event_beyond_use_is_dropped_and_the_rest_is_kept() -> None:
    out, report = repaired('{"a": 1, "traceEvents": [' + A + ", {what?}, " + B + '], "b": 2}')
    assert decoded(out) == {"a": 1, "traceEvents": values(A, B), "b": 2}
    assert (report.kept, report.mended, report.dropped) == (2, 0, 1)
    assert damages(report) == {"dropped-event": 1}


def test_a_trace_cut_anywhere_is_closed() -> None:
    text = '{"a": 1, "traceEvents": [' + A + ", " + B + '], "b": {"c": [1, 2]}}'
    for cut in range(text.index("[") + 1, len(text)):
        out, report = repaired(text[:cut])
        kept = decoded(out)
        assert kept["a"] == 1
        assert kept["traceEvents"] == values(A, B)[: report.kept]
        assert report.kept == (text[:cut].count(A) + text[:cut].count(B))
        assert "truncated-json" in damages(report)


def test_documents_are_joined() -> None:
    first = '{"rank": 0, "traceEvents": [' + A + '], "end": 1}'
    second = '{"rank": 1, "more": 2, "traceEvents": [' + B + ', {}], "end": 2}'
    out, report = repaired(first + "\n" + second)
    assert decoded(out) == {"rank": 0, "end": 1, "more": 2, "traceEvents": [*values(A, B), {}]}
    assert damages(report) == {"several-documents": 1}


def test_top_level_keys_are_mended_too() -> None:
    out, _ = repaired('{"a": NaN, "traceEvents": [' + A + '], "b": "C:\\Users", "c": 1 "d": 2')
    assert decoded(out) == {"a": None, "traceEvents": values(A), "b": "C:\\Users", "c": 1}


@pytest.mark.parametrize("text", ["", "{}", "hello", "\0", '{"a": 1}'])
def test_what_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(UnreadableTraceError):
        repaired(text)


def test_a_repair_reads_like_the_damaged_trace() -> None:
    text = of_events(A, '{"ph": "X", "name": "say "hello"", "args": {"stream": 3, "blocks per SM": nan}}', "{?}", B)
    out, _ = repaired(text)
    trace = scanned(out)
    assert rows(trace) == rows(scanned(text))
    assert damages(trace) == {}
    assert repaired(out)[0] == out


def test_memory_does_not_grow_with_the_text() -> None:
    script = (
        "import itertools, resource\n"
        "from torchdiag.trace.quality import QualityLog\n"
        "from torchdiag.trace.repair import repair\n"
        f"event = {A!r}.encode() + b', '\n"
        "block = event * 4000\n"
        "text = itertools.chain([b'{\"traceEvents\": ['], itertools.repeat(block, 400))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "report = repair(text, lambda piece: None, quality=QualityLog())\n"
        "print(report.kept, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    kept, grown = map(int, done.stdout.split())
    assert kept == 1_600_000
    assert grown * resource.getpagesize() // resource.getpagesize() < 20_000  # KiB, for 160 MB of text

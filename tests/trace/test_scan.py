"""What the columns hold, for texts small enough to read: numbers, strings, tracks, arguments, top-level keys."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scanning import damages, of_events, rows, scanned

from torchdiag.trace.columns import MISSING
from torchdiag.trace.quality import QualityLog, UnreadableTraceError
from torchdiag.trace.scan import scan

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("-0", 0),
        ("7", 7_000),
        ("1695835542515301", 1_695_835_542_515_301_000),
        ("1695835542515.301", 1_695_835_542_515_301),
        ("12.5", 12_500),
        ("12.05", 12_050),
        ("12.005", 12_005),
        ("0.001", 1),
        ("-0.001", -1),
        ("-3.25", -3_250),
        # More than three decimals: to the nearest, halves away from zero.
        ("0.0004", 0),
        ("0.0005", 1),
        ("-0.0005", -1),
        ("0.0015", 2),
        ("0.00149999999999999999", 1),
        ("0.0014999", 1),
        ("0.0015001", 2),
        ("1.9995", 2_000),
        ("0.9994999999", 999),
        ("102.95699890136719", 102_957),
        ("134.49", 134_490),
        ("12.3456789", 12_346),
        # Exponents.
        ("1e3", 1_000_000),
        ("1E+3", 1_000_000),
        ("1.5e-3", 2),
        ("1.4e-3", 1),
        ("25e-4", 3),
        ("0.00000000000000000001e23", 1_000_000),
        ("1.6958355425153e15", 1_695_835_542_515_300_000),
        ("0e999999999999", 0),
        ("1e-999999999999", 0),
        # The ends of the range.
        ("9223372036854775.807", LARGEST),
        ("-9223372036854775.807", -LARGEST),
        ("9223372036854775.8074", LARGEST),
    ],
)
def test_times_are_decimal_microseconds_read_to_the_nanosecond(text: str, ns: int) -> None:
    for written in (text, f'"{text}"', f'" {text} "'):
        trace = scanned(of_events(f'{{"ts": {written}, "dur": {written} }}'))
        assert (trace.ts_ns[0], trace.dur_ns[0]) == (ns, ns)


@pytest.mark.parametrize(
    "text", ["9223372036854775.8075", "9223372036854775.808", "1e16", "1e400", "-9300000000000000"]
)
def test_times_beyond_64_bits_are_missing_and_told(text: str) -> None:
    trace = scanned(of_events(f'{{"ts": {text}}}'))
    assert trace.ts_ns.tolist() == [MISSING]
    assert damages(trace) == {"integer-overflow": 1}


@pytest.mark.parametrize("text", ["null", "true", '"soon"', '""', "[1]", '{"a": 1}', '"1e"', '"."', '"nan"', '"inf"'])
def test_a_time_that_is_no_number_is_missing(text: str) -> None:
    trace = scanned(of_events(f'{{"ts": {text}, "dur": 1}}'))
    assert (trace.ts_ns.tolist(), trace.dur_ns.tolist()) == ([MISSING], [1000])


def test_times_written_as_strings_are_read_and_told() -> None:
    trace = scanned(of_events('{"ts": "1.5", "dur": "2"}', '{"ts": 3}'))
    assert trace.ts_ns.tolist() == [1500, 3000]
    assert damages(trace) == {"string-number": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("616", 616),
        ("-1", -1),
        ('"616"', 616),
        ('"0x0"', 0),
        ('"0xFf"', 255),
        ('" 12 "', 12),
        ("1e3", 1000),
        ("12.0", 12),
        ("9223372036854775807", LARGEST),
        ("-9223372036854775808", -LARGEST - 1),
        ("18446744073709551615", -1),
        ('"0xFFFFFFFFFFFFFFFF"', -1),
        ("9223372036854775808", -LARGEST - 1),
        ("12345678901234567", 12345678901234567),
        ("0", 0),
        ('"14139908 bytes"', None),
        ('"0x"', None),
        ('""', None),
        ('"x"', None),
        ("1.5", None),
        ("null", None),
        ("true", None),
        ("[7]", None),
        ('{"stream": 7}', None),
    ],
)
def test_an_integer_argument(text: str, value: int | None) -> None:
    expected = {} if value is None else {"stream": value}
    assert rows(scanned(of_events(f'{{"args": {{"stream": {text}}}}}'))) == [expected]


@pytest.mark.parametrize("text", ["18446744073709551616", "1e20", '"0x10000000000000000"', "-9223372036854775809"])
def test_an_integer_that_does_not_fit_is_missing_and_told(text: str) -> None:
    trace = scanned(of_events(f'{{"args": {{"stream": {text}, "device": 1}}}}'))
    assert rows(trace) == [{"device": 1}]
    assert damages(trace) == {"integer-overflow": 1}


def test_an_address_keeps_its_bits() -> None:
    trace = scanned(of_events('{"args": {"Addr": 18446744073709551614}}'))
    assert trace.args.address.values.view(np.uint64).tolist() == [2**64 - 2]


@pytest.mark.parametrize(
    ("text", "value"), [("0.017857144", 0.017857144), ("64", 64.0), ("-1e-3", -0.001), ('"0.5"', 0.5), ("null", None)]
)
def test_a_real_argument(text: str, value: float | None) -> None:
    expected = {} if value is None else {"blocks_per_sm": value}
    assert rows(scanned(of_events(f'{{"args": {{"blocks per SM": {text}}}}}'))) == [expected]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"[1, 2]"', "[1, 2]"),
        ("[1, 2]", "[1, 2]"),
        ("[[2,3], [ ]]", "[[2,3], [ ]]"),
        (r'["[", "]\"", {"a": "}"}]', r'["[", "]\"", {"a": "}"}]'),
        ('{"a": [1, {"b": null}]}', '{"a": [1, {"b": null}]}'),
        ("12.50", "12.50"),
        ("true", "true"),
        ('""', ""),
        (r'"a\tb"', "a\tb"),
        ("null", None),
    ],
)
def test_a_text_argument_is_the_content_of_a_string_or_the_text_of_anything_else(text: str, value: str | None) -> None:
    expected = {} if value is None else {"grid": value}
    assert rows(scanned(of_events(f'{{"args": {{"grid": {text}}}}}'))) == [expected]


def test_equal_texts_share_a_code() -> None:
    trace = scanned(of_events(*(f'{{"name": "{name}"}}' for name in ("a", r"\u0061", "b", "a", r"\u0062"))))
    assert trace.name.tolist() == [0, 0, 1, 0, 1]
    assert list(trace.names) == ["a", "b"]
    # The two characters `\n` and a line break are different texts, though one's spelling is the other's content.
    trace = scanned(of_events(r'{"name": "\\n"}', r'{"name": "\n"}'))
    assert list(trace.names) == ["\\n", "\n"]


@pytest.mark.parametrize(
    ("spelled", "text"),
    [
        (r"a\"b\\c\/d", 'a"b\\c/d'),
        (r"\b\f\n\r\t", "\b\f\n\r\t"),
        (r"\u00e9\u4e2d", "é中"),
        (r"\ud83d\ude00!", "😀!"),
        (r"\ud83d", "\ufffd"),
        (r"\ude00", "\ufffd"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"\ud83dx", "\ufffdx"),
        (r"\ud83d\u0041", "\ufffdA"),
        (r"\u0000", "\0"),
        ("é中😀", "é中😀"),
        ("a" * 100 + r"\n" + "b" * 100, "a" * 100 + "\n" + "b" * 100),
    ],
)
def test_escapes(spelled: str, text: str) -> None:
    trace = scanned(of_events(f'{{"name": "{spelled}", "cat": "{spelled}", "args": {{"labels": "{spelled}"}}}}'))
    assert rows(trace) == [{"name": text, "cat": text, "labels": text}]
    assert damages(trace) == {}


def test_the_place_of_a_string_among_vectors_does_not_matter() -> None:
    for length in range(70):
        assert rows(scanned(of_events(f'{{"name": "{"x" * length}", "ph": "X"}}'))) == [
            {"name": "x" * length, "ph": "X"}
        ]


def test_the_place_of_a_bracket_among_vectors_does_not_matter() -> None:
    for length in range(140):
        for text in (
            f'["{"]" * length}"]',
            f"[{'[],' * length}0]",
            f'[{" " * length}"\\"]"]',
            f'{{"a": {"[" * 60}1{"]" * 60}}}',
        ):
            trace = scanned(
                of_events(f'{{"args": {{"grid": {text}, "stream": 7}}}}', f'{{"args": {{"grid": {text}}}}}')
            )
            assert rows(trace) == [{"grid": text, "stream": 7}, {"grid": text}]


def test_pids_and_tids_are_numbers_where_there_are_numbers() -> None:
    events = [
        ("1", "2"), ('"1"', '"2"'), ("1.0", '" 2 "'), ('"0x1"', "2"), ('"Spans"', '"stream 7"'), ("null", "[1]"),
        ("1.5", '"1.5"'), ("-1", '""'), ("18446744073709551615", r'"\u0041"'), ("1e2", "true"),
    ]  # fmt: skip
    trace = scanned(of_events(*(f'{{"pid": {pid}, "tid": {tid}}}' for pid, tid in events)))
    places = [(trace.tracks.pids[track], trace.tracks.tids[track]) for track in trace.track]
    assert places == [
        (1, 2), (1, 2), (1, 2), (1, 2), ("Spans", "stream 7"), (None, None),
        ("1.5", "1.5"), (-1, ""), ("18446744073709551615", "A"), (100, None),
    ]  # fmt: skip
    assert len(set(places)) == len(trace.tracks)


def test_neighbouring_tids_of_which_one_starts_like_the_other() -> None:
    trace = scanned(of_events(*(f'{{"pid": {n}, "tid": {n}}}' for n in (7, 71, 7, "7.5", "7e1", "70", 7))))
    assert [trace.tracks.tids[track] for track in trace.track] == [7, 71, 7, "7.5", 70, 70, 7]


def test_only_flow_events_have_an_id() -> None:
    trace = scanned(
        of_events(
            '{"ph": "s", "id": 5}', '{"id": 6, "ph": "f"}', '{"ph": "t", "id": "0x10"}', '{"ph": "X", "id": 7}',
            '{"ph": "s"}', '{"ph": "s", "id": null}', '{"ph": "s", "id": "a"}', '{"ph": "f", "id": "a"}',
            '{"ph": "f", "id": "b"}', '{"ph": "start", "id": 1}',
        )
    )  # fmt: skip
    assert trace.flow_id.rows.tolist() == [0, 1, 2, 6, 7, 8]
    numbers, odd = trace.flow_id.values[:3].tolist(), trace.flow_id.values[3:].tolist()
    assert numbers == [5, 6, 16]
    assert odd[0] == odd[1] != odd[2]
    assert max(odd) < 0


def test_phases() -> None:
    trace = scanned(
        of_events('{"ph": "X"}', '{"ph": ""}', '{"ph": null}', '{"ph": "BE"}', r'{"ph": "\u0058"}', '{"ph": "é"}')
    )
    assert bytes(trace.phase) == b"X\0\0BX\0"


def test_what_is_no_string_is_no_name() -> None:
    assert rows(scanned(of_events('{"name": 5, "cat": null}', '{"name": ["a"], "cat": {"a": 1}}'))) == [{}, {}]


def test_rows_are_the_events_in_the_order_of_the_file() -> None:
    trace = scanned(
        of_events("{}", '{"args": {}}', '{"ph": "M"}', '{"args": null, "ph": "i"}', '{"ph": "X", "args": []}')
    )
    assert rows(trace) == [{}, {}, {"ph": "M"}, {"ph": "i"}, {"ph": "X"}]
    assert damages(trace) == {}


def test_of_two_spellings_the_later_usable_one_counts() -> None:
    events = (
        '{"args": {"bytes": 1, "size": 2}}',
        '{"args": {"size": 2, "bytes": 1}}',
        '{"args": {"bytes": 1, "size": "?"}}',
    )
    trace = scanned(of_events(*events))
    assert trace.args.copied_bytes.values.tolist() == [2, 1, 1]
    assert damages(trace) == {}


def test_of_a_repeated_key_the_last_counts() -> None:
    trace = scanned(
        of_events(
            '{"name": "a", "name": "b", "args": {"stream": 1, "stream": 2}}',
            '{"args": {"stream": 1, "stream": null}}',
            '{"args": {"stream": 1, "device": 2}, "ph": "X", "args": {"device": 3}}',
            '{"args": {"stream": 1}, "args": null}',
            '{"args": {}, "args": {"stream": 5}}',
            '{"args": {"stream": 6}, "args": {}}',
        )
    )
    assert rows(trace) == [{"name": "b", "stream": 2}, {}, {"ph": "X", "device": 3}, {}, {"stream": 5}, {}]
    assert damages(trace) == {"duplicate-key": 7}


def test_keys_may_be_spelled_with_escapes() -> None:
    assert rows(scanned(of_events(r'{"\u0070h": "X", "args": {"str\u0065am": 7}}'))) == [{"ph": "X", "stream": 7}]


def test_arguments_are_no_event_keys_and_event_keys_no_arguments() -> None:
    text = of_events(
        '{"ph": "X", "stream": 3, "args": {"ph": "Y", "ts": 5, "stream": 4, "args": {"stream": 9}}, "ts": 1}'
    )
    assert rows(scanned(text)) == [{"ph": "X", "ts": 1000, "stream": 4}]


@pytest.mark.parametrize("space", ["", " ", "\n", "\r\n", "\t", "\n" + " " * 40])
def test_white_space_may_be_anywhere(space: str) -> None:
    tokens = (
        '{ "a" : 1 , "traceEvents" : [ { "ph" : "X" , "ts" : 1.5 , "args" : { "stream" : 7 , "grid" : [1] } , '
        '"dur" : 2 } , { "ph" : "M" , "args" : { } } , { } ] , "b" : { "c" : [ ] } }'
    )
    trace = scanned(space + tokens.replace(" ", space) + space)
    assert rows(trace) == [{"ph": "X", "ts": 1500, "stream": 7, "grid": "[1]", "dur": 2000}, {"ph": "M"}, {}]
    assert {key: json.loads(value) for key, value in trace.top_level.items()} == {"a": 1, "b": {"c": []}}
    assert damages(trace) == {}


def test_events_alike_but_for_their_white_space() -> None:
    alike = '{"ph":"X", "name":"a","cat":"k", "name": "b", "args":{"stream":1}}'
    events = [alike, alike.replace(":", ": "), alike.replace(",", "\n, "), alike.replace("}", " }"), alike]
    trace = scanned(of_events(*events))
    assert rows(trace) == [{"ph": "X", "name": "b", "cat": "k", "stream": 1}] * 5


def test_a_byte_order_mark_is_no_damage() -> None:
    trace = scanned("\ufeff" + of_events('{"ph": "X"}'))
    assert (rows(trace), damages(trace)) == ([{"ph": "X"}], {})


def test_the_top_level_may_be_the_list() -> None:
    trace = scanned('[{"ph": "X"}, {"ph": "M"}]\n')
    assert (rows(trace), trace.top_level, damages(trace)) == ([{"ph": "X"}, {"ph": "M"}], {}, {})


def test_top_level_keys_before_and_after_the_events_are_kept_as_they_are_written() -> None:
    trace = scanned(r'{"a": 1.50, "b": {"c" : [ ]}, "traceEvents": [{}], "d\u0041": "\u0041", "a": null}')
    assert trace.top_level == {"b": b'{"c" : [ ]}', "dA": rb'"\u0041"', "a": b"null"}


@pytest.mark.parametrize("text", ['{"traceEvents": []}', '{"traceEvents": null}', "[]", '{"a": 1, "traceEvents": [ ]}'])
def test_a_trace_without_events_is_a_trace(text: str) -> None:
    trace = scanned(text)
    assert (len(trace), len(trace.tracks), damages(trace)) == (0, 0, {})


@pytest.mark.parametrize(
    "text", ["", " \n", "{}", '{"a": 1}', "hello", "12", '"traceEvents"', '{"traceEvents": 5}', "\0" * 50]
)
def test_what_holds_no_list_of_events_is_refused(text: str) -> None:
    with pytest.raises(UnreadableTraceError, match=r"a\.json"):
        scanned(text)


def test_arrays_are_views_of_native_memory_that_outlive_the_scan() -> None:
    trace = scanned(of_events(*(f'{{"name": "n{n}", "ts": {n}, "args": {{"stream": {n}}}}}' for n in range(5000))))
    columns = (trace.ts_ns, trace.args.stream.values, trace.names)
    assert not trace.ts_ns.flags.owndata
    assert not trace.ts_ns.flags.writeable
    del trace
    assert columns[0].tolist() == [1000 * n for n in range(5000)]
    assert columns[1].tolist() == list(range(5000))
    assert columns[2][4999] == "n4999"


def test_pieces_may_be_any_kind_of_buffer() -> None:
    data = of_events('{"ph": "X"}').encode()
    pieces = [data[:5], bytearray(data[5:9]), b"", memoryview(data)[9:]]
    assert rows(scan(pieces, path="", quality=QualityLog())) == [{"ph": "X"}]


ENDLESS = """
import resource
from torchdiag.trace.quality import QualityLog
from torchdiag.trace.repair import repair
from torchdiag.trace.scan import scan

def text():
    yield {start!r}
    while True:
        yield b'{{"name": "a", "ts": 1, "args": {{"stream": 7}}}}, ' * 10000

scan([b"[]"], path="", quality=QualityLog())
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
try:
    {read}
except MemoryError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("start", "read"),
    [
        (b"[", "scan(text(), path='', quality=QualityLog())"),
        (b'{"traceEvents": [], "a": [', "scan(text(), path='', quality=QualityLog())"),
        (b'{"traceEvents": [], "a": [', "repair(text(), lambda piece: None, quality=QualityLog())"),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit memory")
def test_running_out_of_memory_is_an_error_like_any_other(start: bytes, read: str) -> None:
    script = ENDLESS.format(start=start, read=read)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "not enough memory" in done.stdout


def test_more_distinct_keys_than_are_remembered() -> None:
    events = [f'{{"ph": "X", "args": {{"key{n}": {n}, "stream": {n}, "other{n}": [{n}]}}}}' for n in range(5000)]
    trace = scanned(of_events(*events))
    assert trace.args.stream.values.tolist() == list(range(5000))
    assert damages(trace) == {}

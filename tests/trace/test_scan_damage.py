"""Damaged text is read as far as it goes, and what was wrong is told: one small text for each kind of damage."""

import pytest
from scanning import Event, damages, of_events, rows, scanned

from torchdiag.trace.damage import tell
from torchdiag.trace.quality import QualityLog

A = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 5, "dur": 1.5, "args": {"stream": 7}}'
B = '{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 2, "ts": 9, "dur": 0.5}'
ROW_A = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 5000, "dur": 1500, "stream": 7}
ROW_B = {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 2, "ts": 9000, "dur": 500}


def named(name: str) -> Event:
    return {**ROW_A, "name": name}


def with_a(old: str, new: str) -> str:
    """A document whose first event is damaged and whose second is sound."""
    assert old in A
    return of_events(A.replace(old, new), B)


# Strings.


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        (r"C:\Users\user\torch\aten::empty", r"C:\Users\user\torch\aten::empty"),
        (r"C:\Users\new", r"C:\Users\new"),
        (r"\user", r"\user"),
        (r"\u12", r"\u12"),
        ("\\x\\\\y", r"\x\y"),
        ("D:\\Users\\", "D:\\Users\\"),
    ],
)
def test_backslashes_that_are_no_escapes_are_backslashes(spelled: str, name: str) -> None:
    trace = scanned(with_a('"a"', f'"{spelled}"'))
    assert rows(trace) == [named(name), ROW_B]
    assert damages(trace) == {"bad-escape": 1}


@pytest.mark.parametrize(
    "name",
    [
        '{"device": "cpu"}(12): empty',
        '{"device": "cpu", "x": 1}(12): empty',
        'say "hello"',
        '"',
        '""',
        'f("a", "b")',
        'f("a", b)',
        'a": b',
        '["x"]',
        "{'a': \"b\"}",
    ],
)
def test_quotes_within_a_name(name: str) -> None:
    trace = scanned(with_a('"a"', f'"{name}"'))
    assert rows(trace) == [named(name), ROW_B]
    assert damages(trace) == {"unescaped-quote": 1}


def test_quotes_within_an_argument() -> None:
    trace = scanned(with_a('"stream": 7', '"labels": "the "best" one", "stream": 7'))
    assert rows(trace) == [{**ROW_A, "labels": 'the "best" one'}, ROW_B]
    assert damages(trace) == {"unescaped-quote": 1}


def test_control_characters_within_a_name() -> None:
    trace = scanned(with_a('"a"', '"a\n\tdoc\x01\x00"'))
    assert rows(trace) == [named("a\n\tdoc\x01\0"), ROW_B]
    assert damages(trace) == {"control-character": 1}


@pytest.mark.parametrize(
    "raw",
    [b"\xff", b"\xc3(", b"\xe2\x82", b"\xe2\x82(", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80", b"\xf5\x80\x80\x80"],
)
def test_bytes_that_are_not_utf8_are_replaced_as_python_replaces_them(raw: bytes) -> None:
    trace = scanned(with_a('"a"', '"é<>"').encode().replace(b"<>", raw))
    assert rows(trace) == [named(("é".encode() + raw).decode("utf-8", "replace")), ROW_B]
    assert damages(trace) == {"bad-utf8": 1}


@pytest.mark.parametrize(
    ("old", "new"), [('"a"', '"a'), ('"cpu_op"', '"cpu_op'), ('"a"', 'a"'), ('"cpu_op"', 'cpu_op"')]
)
def test_a_quote_is_missing_at_a_value(old: str, new: str) -> None:
    trace = scanned(with_a(old, new))
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"missing-quote": 1}


@pytest.mark.parametrize("key", ['tid"', "tid"])
def test_a_quote_is_missing_at_a_key(key: str) -> None:
    trace = scanned(with_a('"tid"', key))
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"missing-quote": 1}


# Values.


@pytest.mark.parametrize(
    "word", ["N/A", "NaN", "nan", "-nan", "-nan(ind)", "Infinity", "-Infinity", "inf", "-inf", "None", "undefined"]
)
def test_words_in_place_of_a_value_are_read_as_missing(word: str) -> None:
    trace = scanned(with_a('"stream": 7', f'"blocks per SM": {word}, "stream": 7'))
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"bare-word": 1}
    trace = scanned(with_a('"dur": 1.5', f'"dur": {word}'))
    assert rows(trace) == [{key: value for key, value in ROW_A.items() if key != "dur"}, ROW_B]


def test_a_value_is_missing() -> None:
    trace = scanned(with_a('"dur": 1.5', '"dur": '))
    assert rows(trace) == [{key: value for key, value in ROW_A.items() if key != "dur"}, ROW_B]
    assert damages(trace) == {"bare-word": 1}


def test_words_within_a_list() -> None:
    trace = scanned(with_a('"stream": 7', '"grid": [1, NaN, True], "stream": 7'))
    assert rows(trace) == [{**ROW_A, "grid": "[1,null,true]"}, ROW_B]
    assert damages(trace) == {"bare-word": 2}


@pytest.mark.parametrize(
    ("text", "value"), [("007", 7), ("+7", 7), ("7.", 7), ("0x7", 7), ("1.2.3", None), ("7_", None)]
)
def test_numbers_that_json_writes_otherwise(text: str, value: int | None) -> None:
    trace = scanned(with_a('"stream": 7', f'"stream": {text}'))
    expected = {**ROW_A, "stream": value}
    assert rows(trace) == [expected if value is not None else {k: v for k, v in ROW_A.items() if k != "stream"}, ROW_B]
    assert damages(trace) == {"bad-number": 1}


def test_values_nested_too_deeply_are_left_out() -> None:
    deep = "[" * 2000 + "]" * 2000
    trace = scanned(with_a('"stream": 7', f'"grid": {deep}, "stream": 7'))
    assert [row["stream"] for row in rows(trace) if "stream" in row] == [7]
    assert len(trace) == 2
    assert damages(trace) == {"deep-nesting": 1}


def test_nesting_without_end_is_survived() -> None:
    for bracket in ("[", '{"a":', '[{"a":'):
        trace = scanned(of_events(A) + bracket * 100_000)
        assert rows(trace) == [ROW_A]
        trace = scanned('{"traceEvents": [' + A + ", " + bracket * 100_000)
        assert rows(trace) == [ROW_A]
        assert "truncated-json" in damages(trace)


def test_time_does_not_grow_with_the_square_of_the_damage() -> None:
    # Each of these starts an event that never ends; an attempt to mend one may look far ahead.
    for start in ('[{"ph":', '{"ph":"X","name":"x,', '{"ph":"X","a":[1,', ',{"name":"X","a":[1,', '{"ph":"X","a":{"'):
        scanned('{"traceEvents": [' + start * (1_000_000 // len(start)))


def test_an_event_without_end_is_given_up_before_memory_is() -> None:
    endless = '{"ph": "X", "args": {"list": [' + "1, " * 25_000_000
    trace = scanned('{"traceEvents": [' + A + ", " + endless + "{}}}, " + B + "]}")
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"dropped-event": 1}


def test_a_list_that_is_not_closed_does_not_swallow_the_events_after_it() -> None:
    trace = scanned(with_a('"stream": 7}}', '"stream": 7, "grid": [1, 2'))
    assert rows(trace) == [{**ROW_A, "grid": "[1,2]"}, ROW_B]
    assert damages(trace) == {"missing-bracket": 1}


# Commas and brackets.


@pytest.mark.parametrize(
    "text",
    [
        of_events(A, B + ","),
        of_events(A + ",", B),
        of_events(A, B)[:-1] + ",}",
        with_a("}}", ",}}"),
        with_a("}}", "},}"),
        with_a('"stream": 7', '"stream": 7,'),
        with_a('"pid": 1,', '"pid": 1,,'),
    ],
)
def test_a_comma_too_many(text: str) -> None:
    trace = scanned(text)
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"trailing-comma": 1}


@pytest.mark.parametrize(
    "text",
    [
        of_events(A + B),
        of_events(A + "\n" + B),
        with_a('"pid": 1,', '"pid": 1'),
        with_a('"name": "a",', '"name": "a"\n'),
        of_events(A, B).replace("]}", '] "b": 1}').replace(", {", ', "b": 1, {', 0),
    ],
)
def test_a_comma_is_missing(text: str) -> None:
    trace = scanned(text)
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"missing-comma": 1}


@pytest.mark.parametrize("text", [of_events(A[:-1], B), of_events(A[:-2], B), of_events(B, A[:-1])])
def test_an_event_without_its_closing_brackets(text: str) -> None:
    trace = scanned(text)
    assert sorted(rows(trace), key=lambda row: row["name"]) == [ROW_A, ROW_B]
    assert damages(trace) == {"missing-bracket": 1}


@pytest.mark.parametrize("ending", ["", "\n", "]", "],", '], "a"', '], "a": ', '], "a": [1, ', '], "a": {"b": 1}', ","])
def test_the_end_is_missing(ending: str) -> None:
    trace = scanned('{"schemaVersion": 1, "traceEvents": [' + A + ", " + B + ending)
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"truncated-json": 1}
    assert trace.top_level["schemaVersion"] == b"1"


def test_an_event_cut_anywhere_is_dropped_and_those_before_it_are_kept() -> None:
    start = '{"traceEvents": [' + A + ", "
    for cut in range(1, len(B)):
        trace = scanned(start + B[:cut])
        assert rows(trace) == [ROW_A]
        assert damages(trace) == {"truncated-json": 1, "dropped-event": 1}
        assert {note.first_offset for note in trace.quality} == {len(start), len(start) + cut}


# Events that cannot be saved.


@pytest.mark.parametrize(
    "event",
    [
        '{"ph": "s"t::detail::Array<char*, 3> >(int)", "pid": 0}',
        "{what is this}",
        '{"ph": "X" {',
        '{"ph": "X", "name": }}}}',
        '{"ph": "X", ]',
        "{",
        '{"ph": "X", "args": {"a": [1, 2}}',
        '{"ph": "X", "name": "b", 5: 6}',
    ],
)
def test_only_the_damaged_event_is_dropped(event: str) -> None:
    trace = scanned('{"a": 1, "traceEvents": [' + A + ", " + event + ", " + B + '], "b": 2}')
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace)["dropped-event"] == 1
    assert trace.quality[0].first_offset == len('{"a": 1, "traceEvents": [' + A + ", ")
    assert trace.top_level == {"a": b"1", "b": b"2"}


def test_a_damaged_last_event_does_not_hide_the_keys_after_the_list() -> None:
    trace = scanned('{"traceEvents": [' + A + ', {"ph": "X", ?? {}}\n ],\n "b": 2}')
    assert rows(trace) == [ROW_A]
    assert damages(trace) == {"dropped-event": 1}
    assert trace.top_level == {"b": b"2"}


def test_objects_within_a_damaged_event_are_no_events() -> None:
    damaged = '{"ph": "X", ??, "args": {"list": [{"name": "x"}, {"cat": "y"}], "n": 1}}'
    trace = scanned('{"traceEvents": [' + A + ", " + damaged + ", " + B + '], "b": 2}')
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"dropped-event": 1}
    assert trace.document_starts == (0,)
    assert trace.top_level == {"b": b"2"}


def test_events_may_begin_with_any_key() -> None:
    later = '{"name": "b", "ph": "X", "ts": 9}'
    trace = scanned(of_events(A, "{?}", later, '{"ph": "M"}'))
    assert rows(trace) == [ROW_A, {"name": "b", "ph": "X", "ts": 9000}, {"ph": "M"}]


def test_nothing_of_a_dropped_event_stays() -> None:
    trace = scanned(of_events(A, '{"ph": "X", "args": {"stream": 3, "grid": [1], "device": 5 ?}}', B))
    assert rows(trace) == [ROW_A, ROW_B]


@pytest.mark.parametrize("stray", ["garbage", "\0\0\0", "}", "12", "lost } text ]", "\xff"])
def test_stray_text_between_events(stray: str) -> None:
    trace = scanned('{"traceEvents": [' + A + stray + ", " + B + "]}")
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"stray-text": 1}


def test_stray_text_before_the_end_of_the_list() -> None:
    trace = scanned('{"traceEvents": [' + A + "\n0 ], " + '"b": 2}')
    assert (rows(trace), damages(trace), trace.top_level) == ([ROW_A], {"stray-text": 1}, {"b": b"2"})


@pytest.mark.parametrize("element", ["null", "5", '"text"', "[1, 2]", "true"])
def test_an_element_that_is_no_event_is_dropped(element: str) -> None:
    trace = scanned(of_events(A, element, B))
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"dropped-event": 1}


# Around the events.


def test_a_header_whose_start_is_lost() -> None:
    text = (
        '{\n {"id": 6, "name": "GPU"},\n {"id": 7, "name": "GPU"}\n ],\n "traceEvents": [' + A + ", " + B + '], "b": 2}'
    )
    trace = scanned(text)
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"damaged-header": 1}
    assert trace.top_level == {"b": b"2"}


@pytest.mark.parametrize("before", ["loadTrace(", "\0\0", "var trace = ", "2024-01-01 [INFO] start\n"])
def test_text_before_the_document(before: str) -> None:
    trace = scanned(before + '{"a": 1, "traceEvents": [' + A + ", " + B + "]}")
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"damaged-header": 1}
    assert trace.top_level == {"a": b"1"}


@pytest.mark.parametrize("after", [");", "\0\0\0\0", "}", "]", "done {", "trailing [1, 2]"])
def test_text_after_the_document(after: str) -> None:
    trace = scanned(of_events(A, B) + after)
    assert rows(trace) == [ROW_A, ROW_B]
    assert damages(trace) == {"trailing-garbage": 1}


def test_damaged_metadata_is_mended_or_left_out() -> None:
    trace = scanned('{"a": NaN, "b": [1, 2,], "traceEvents": [' + A + '], "c": "C:\\Users", "d": 1}')
    assert trace.top_level == {"a": b"null", "b": b"[1,2]", "c": rb'"C:\\Users"', "d": b"1"}
    assert damages(trace) == {"bare-word": 1, "trailing-comma": 1, "bad-escape": 1}
    trace = scanned('{"traceEvents": [' + A + '], "c": {5: 6}, "d": 1}')
    assert (rows(trace), damages(trace)) == ([ROW_A], {"damaged-metadata": 1})
    assert trace.top_level == {"d": b"1"}
    trace = scanned('{"a": {5: 6}, "b": 1, "traceEvents": [' + A + '],\0 "c": 2, "d": 3}')
    assert (rows(trace), damages(trace)) == ([ROW_A], {"damaged-header": 1, "damaged-metadata": 1})
    assert trace.top_level == {"b": b"1", "d": b"3"}


def test_events_one_a_line_without_a_list() -> None:
    trace = scanned(A + "\n" + B + "\n" + A + "\n")
    assert rows(trace) == [ROW_A, ROW_B, ROW_A]
    assert damages(trace) == {"damaged-header": 1, "missing-comma": 2}
    # One that is cut is cut all the same.
    assert damages(scanned(A + "\n" + B[:20])) == {
        "damaged-header": 1,
        "missing-comma": 1,
        "truncated-json": 1,
        "dropped-event": 1,
    }


@pytest.mark.parametrize("start", ["", '"stream": 7}}, ', '7, "args": {"a": 1}}, '])
def test_the_start_of_the_file_is_lost(start: str) -> None:
    trace = scanned(start + A + ", " + B + '], "b": 2}')
    assert rows(trace) == [ROW_A, ROW_B]
    assert trace.top_level["b"] == b"2"


def test_a_bracket_that_closes_the_list_early() -> None:
    trace = scanned('{"traceEvents": [' + A + ", ]" + B[1:] + ", " + A + ", " + B + '], "b": 2}')
    assert rows(trace) == [ROW_A, ROW_A, ROW_B]
    assert trace.document_starts == (0,)
    assert trace.top_level["b"] == b"2"


# Several traces in one file.


@pytest.mark.parametrize("between", ["", "\n", "\ufeff"])
def test_several_documents(between: str) -> None:
    first = '{"distributedInfo": {"rank": 0}, "traceEvents": [' + A + ", " + B + "]}"
    second = '{"distributedInfo": {"rank": 1}, "traceEvents": [' + B + "]}"
    trace = scanned(first + between + second + between + "[" + A + "]")
    assert rows(trace) == [ROW_A, ROW_B, ROW_B, ROW_A]
    assert trace.document_starts == (0, 2, 3)
    assert trace.top_level == {"distributedInfo": b'{"rank": 0}'}
    assert damages(trace) == {"several-documents": 2, "several-ranks": 2}


def test_a_document_after_one_that_was_cut() -> None:
    whole = '{"schemaVersion": 1, "traceEvents": [' + A + ", " + B + "]}"
    for cut in range(whole.index(A) + len(A), len(whole) - 1):
        trace = scanned(whole[:cut] + whole)
        assert rows(trace)[0] == ROW_A
        assert rows(trace)[-2:] == [ROW_A, ROW_B]
        assert trace.document_starts == (0, len(trace) - 2)
        assert damages(trace)["several-documents"] == 1


def test_every_code_has_a_sentence_for_one_and_for_several() -> None:
    codes = """
        truncated-json dropped-event damaged-header damaged-metadata stray-text trailing-garbage several-documents
        bad-escape unescaped-quote control-character bad-utf8 bare-word bad-number trailing-comma missing-comma
        missing-quote missing-bracket deep-nesting string-number integer-overflow duplicate-key
    """
    for code in codes.split():
        log = QualityLog()
        tell(log, code, 1, 0)
        tell(log, code, 1234, 5)
        assert [(note.code, note.count, note.first_offset) for note in log.notes] == [(code, 1, 0), (code, 1234, 5)]
        assert all("{}" not in note.message and note.message for note in log.notes)

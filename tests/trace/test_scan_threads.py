"""However many threads read a text, what is read from it is the same."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scanning import everything, of_events, rows, scanned
from trace_seeds import seeds

from torchdiag.trace.columns import Trace
from torchdiag.trace.quality import UnreadableTraceError

EVENTS = 300


def plain(number: int) -> str:
    return (
        f'{{"ph": "X", "name": "kernel {number % 7}", "cat": "kernel", "pid": {number % 3}, "tid": {number % 5}, '
        f'"ts": {number}.125, "dur": 0.5, "args": {{"stream": {number % 4}, "correlation": {number}}}}}'
    )


def with_new_texts(number: int) -> str:
    args = f'"grid": [{number}, 1, 1], "Collective name": "c\\u00e9 {number // 2}"'
    return f'{{"ph": "X", "name": "n\\n{number // 3}", "tid": "t{number}", "ts": {number}, "args": {{{args}}}}}'


def with_ids_that_are_no_numbers(number: int) -> str:
    return f'{{"ph": "s", "name": "flow", "id": "arrow {number // 2}", "ts": {number}}}'


def with_more_keys_than_are_remembered(number: int) -> str:
    # The keys that are too many are not told apart, so that `a` twice is no longer noticed: it depends on all before.
    keys = "".join(f', "key {number} {place}": 1' for place in range(20))
    return f'{{"ph": "X", "ts": {number}{keys}, "late {number}": 1, "late {number}": 2}}'


def with_what_looks_like_events(number: int) -> str:
    inner = ', {"ph": "X", "ts": 1}' * 3
    return f'{{"ph": "X", "name": "n", "ts": {number}, "args": {{"list": [1{inner}], "stream": {number}}}}}'


def damaged_now_and_then(number: int) -> str:
    return plain(number).replace('"cat"', '"cat' if number % 41 == 7 else '"cat"')


def with_oddities(number: int) -> str:
    odd = '"ts": "12.5", "args": {"stream": 1}, ' if number % 3 else '"dur": 99999999999999999999, '
    return f'{{"ph": "X", {odd}"name": "n", "args": {{"device": {number}}}}}'


KINDS = [
    plain,
    with_new_texts,
    with_ids_that_are_no_numbers,
    with_more_keys_than_are_remembered,
    with_what_looks_like_events,
    damaged_now_and_then,
    with_oddities,
]


def all_of(trace: Trace) -> object:
    """Everything, and the numbers of texts and tracks too."""
    dictionaries = [list(texts) for texts in (trace.names, trace.categories, trace.texts)]
    return everything(trace), dictionaries, trace.tracks.pids, trace.tracks.tids, trace.flow_id.values.tolist()


def outcome(text: str | bytes, *, block: int, threads: int) -> object:
    try:
        return all_of(scanned(text, block=block, threads=threads))
    except UnreadableTraceError as error:
        return str(error)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_threads_gives_the_same(kind: Callable[[int], str], threads: int) -> None:
    text = of_events(*(kind(number) for number in range(EVENTS)))
    expected = outcome(text, block=0, threads=1)
    for block in (500, 3_000, 20_000, len(text)):
        assert outcome(text, block=block, threads=threads) == expected


def test_nothing_is_lost_between_threads() -> None:
    trace = scanned(of_events(*(plain(number) for number in range(EVENTS))), block=4_000, threads=4)
    assert [row["correlation"] for row in rows(trace)] == list(range(EVENTS))
    assert np.array_equal(trace.ts_ns, np.arange(EVENTS) * 1_000 + 125)


@pytest.mark.parametrize("number", range(len(seeds())))
def test_damaged_texts_give_the_same(number: int) -> None:
    text = seeds()[number]
    expected = outcome(text, block=0, threads=1)
    for block in (16, 160, len(text)):
        assert outcome(text, block=block, threads=2) == expected


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 20)), min_size=20, max_size=60),
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from('{}[],:"\\ \n')), max_size=3),
    st.integers(100, 4_000),
)
def test_bytes_put_in_anywhere_give_the_same(
    chosen: list[tuple[Callable[[int], str], int]], put_in: list[tuple[float, str]], block: int
) -> None:
    text = of_events(*(kind(number) for kind, number in chosen))
    for place, byte in put_in:
        at = int(place * len(text))
        text = text[:at] + byte + text[at:]
    assert outcome(text, block=block, threads=3) == outcome(text, block=0, threads=1)

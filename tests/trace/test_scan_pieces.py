"""However a text is cut into pieces, what is read from it is the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanning import everything, repaired, scanned
from trace_seeds import seeds

from torchdiag.trace.quality import UnreadableTraceError

TEXT = r"""
    { } [ ] , : " \ {"ph":"X" "ph": "X", "name": "a\u0041\ud83d\ude00é", "cat": "k", "pid": 1, "tid": "t", "ts": 1.5,
    "dur": 2 "args": { "stream": 7 "grid": [1, 2] }} ]} {"traceEvents": [ "traceEvents": NaN null 12.75e-1 \U x" }, {
"""
PIECES = (*TEXT.split(), "\n", "\x01", "\ufeff")


def outcome(text: bytes, chunk: int = 1 << 20, block: int = 0) -> object:
    try:
        return everything(scanned(text, chunk=chunk, block=block))
    except UnreadableTraceError as error:
        return str(error)


def mended(text: bytes, chunk: int = 1 << 20, block: int = 0) -> object:
    try:
        return repaired(text, chunk=chunk, block=block)
    except UnreadableTraceError as error:
        return str(error)


@pytest.mark.parametrize("number", range(len(seeds())))
def test_every_size_of_piece_gives_the_same(number: int) -> None:
    text = seeds()[number]
    expected, expected_repair = outcome(text), mended(text)
    for size in (1, 2, 3, 5, 7, 16, 17, 63, 64, 65, 100, len(text) - 1, len(text)):
        # `chunk` is what is fed at once, `block` what is looked at: only with both at 1 is every border tried.
        assert outcome(text, chunk=size) == expected
        assert outcome(text, chunk=size, block=size) == expected
        assert outcome(text, block=size) == expected
        assert mended(text, chunk=size, block=size) == expected_repair


@given(
    st.lists(st.sampled_from(PIECES), max_size=60).map(" ".join),
    st.integers(1, 50),
    st.integers(1, 50),
)
def test_pieces_of_nonsense_give_the_same(nonsense: str, chunk: int, block: int) -> None:
    text = nonsense.encode()
    assert outcome(text, chunk, block) == outcome(text)
    assert mended(text, chunk, block) == mended(text)


@given(st.binary(max_size=200), st.integers(1, 20))
def test_any_bytes_are_survived(data: bytes, block: int) -> None:
    for text in (data, b'{"traceEvents": [' + data, b'{"traceEvents": [{"ph": "X", "name": "' + data):
        assert outcome(text, 1, block) == outcome(text)
        assert mended(text, 1, block) == mended(text)

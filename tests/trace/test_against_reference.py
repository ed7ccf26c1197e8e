"""The native reader against the slow one: on every real trace the standard library can read, and on odd events."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import corpus
from reference.agreement import differences
from reference.reader import parse, trace_of
from strategies import layouts, odd_events, traces
from written import json_text

from torchdiag.trace.load import load
from torchdiag.trace.quality import UnreadableTraceError


@corpus.needs_traces
@pytest.mark.slow
@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("name", corpus.names())
def test_columns_of_real_traces(name):
    events, top_level = corpus.parsed_or_skip(name)
    if not events and "traceEvents" not in corpus.text(name):
        with pytest.raises(UnreadableTraceError):
            load(corpus.path_of(name))
        return
    assert differences(load(corpus.path_of(name)), trace_of(events, top_level)) == []


def both(text):
    """The trace of a text by the fast reader and by the slow one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_text(text, encoding="utf-8")
        return load(path), trace_of(*parse(text))


@given(traces(), layouts, st.booleans())
def test_columns_of_generated_traces(events, layout, bare):
    assert differences(*both(json_text(events, layout, bare=bare))) == []


@given(st.lists(odd_events(), min_size=1, max_size=6), layouts)
def test_columns_of_odd_events(events, layout):
    assert differences(*both(json_text(events, layout))) == []

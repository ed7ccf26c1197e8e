"""The Parquet files that are written are what pyarrow reads."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdiag.suite.parquet import to_parquet

parquet = pytest.importorskip("pyarrow.parquet")

COLUMNS = {"whole": int, "real": float, "text": str}
cells = {
    "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
    "real": st.none() | st.floats(allow_nan=False),
    "text": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
}


def read(content):
    return parquet.read_table(io.BytesIO(content))


@given(st.lists(st.fixed_dictionaries(cells), max_size=30))
@settings(max_examples=40, deadline=None)
def test_every_cell_comes_back(rows):
    assert read(to_parquet(COLUMNS, rows)).to_pylist() == rows


def test_the_types_and_a_text_that_is_no_unicode():
    table = read(to_parquet(COLUMNS, [{"whole": 1, "real": 0.5, "text": "\ud800"}]))
    assert [str(field.type) for field in table.schema] == ["int64", "double", "string"]
    assert table.to_pylist()[0]["text"] == "\\ud800"


def test_many_columns_and_rows():
    columns = {f"column {number}": int for number in range(70)}
    rows = [dict.fromkeys(columns, row if row % 3 else None) for row in range(1000)]
    assert read(to_parquet(columns, rows)).to_pylist() == rows

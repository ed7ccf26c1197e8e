"""The table of what was recorded beside the profiler."""

import io
from dataclasses import replace

import pytest
from report import breakdowns
from rich.cells import cell_len

from torchdiag.report.breakdown_html import to_html
from torchdiag.report.breakdown_terminal import print_breakdown
from torchdiag.report.recorded_page import label, often, recorded_page
from torchdiag.report.terminal import canvas
from torchdiag.timeline.result import Recorded

EXCEPTION = Recorded("exception", "KeyError", "/a/train.py:12:step", "/a/train.py:14:step", "", 6, 30_000, 3)
ALL = (
    EXCEPTION,
    Recorded("throw", "c10::Error", "/lib/libtorch_cpu.so", "", "aten::mm", 3, 60_000, 3),
    Recorded("collection", "generation 2", "", "", "", 1, 9_000_000, 3),
    Recorded("warning", "UserWarning", "/a/model.py:7:f", "", "", 3, 0, 3),
)


def page(breakdown, width=80):
    stream = io.StringIO()
    print_breakdown(breakdown, canvas(stream, width))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (EXCEPTION, "KeyError at train.py:12 step, handled at line 14"),
        (replace(EXCEPTION, handled_at="/a/main.py:3:main"), "KeyError at train.py:12 step, handled at main.py:3 main"),
        (replace(EXCEPTION, handled_at=""), "KeyError at train.py:12 step"),
        (replace(EXCEPTION, place="C:/a/train.py:12:step", handled_at=""), "KeyError at train.py:12 step"),
        (replace(EXCEPTION, place=""), "KeyError"),
        (ALL[1], "c10::Error thrown by aten::mm"),
        (replace(ALL[1], operator=""), "c10::Error in libtorch_cpu.so"),
        (replace(ALL[1], operator="", place="at::mm(at::Tensor const&)"), "c10::Error in at::mm(at::Tensor const&)"),
        (ALL[2], "generation 2"),
        (ALL[3], "UserWarning at model.py:7 f"),
    ],
)
def test_labels(item, text):
    assert label(item) == text


@pytest.mark.parametrize(
    ("number", "steps", "text"),
    [(6, 3, "2"), (0, 3, "0"), (1, 3, "0.33"), (5, 2, "2.5"), (7, 0, "7"), (4001, 4, "1,000")],
)
def test_how_often(number, steps, text):
    assert often(number, steps) == text


def test_kinds_and_their_places():
    rows = recorded_page(ALL).rows
    assert [(row.depth, row.often, row.time) for row in rows if not row.depth] == [
        (0, "2", "10.0 µs"),
        (0, "1", "20.0 µs"),
        (0, "0.33", "3.00 ms"),
        (0, "1", ""),
    ]
    assert len(rows) == 8
    assert recorded_page(()) is None


def test_many_places_are_summed_up():
    items = [replace(EXCEPTION, name=f"E{number}") for number in range(7)]
    rows = recorded_page(items).rows
    assert rows[0].often == "14"
    assert (rows[-1].label, rows[-1].often) == ("3 more places", "6")


def test_in_all_where_steps_are_not_known():
    assert recorded_page([replace(EXCEPTION, steps=0)]).often == "times"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_it_stands_on_the_page_and_fits(width):
    text = page(replace(breakdowns.training(), recorded=ALL), width)
    assert "Beside the times above" in text
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "Beside the times above" not in page(breakdowns.training(), width)


def test_nothing_in_it_is_obeyed():
    hostile = tuple(
        replace(item, name=breakdowns.HOSTILE, place=f"{breakdowns.HOSTILE}:3:f", operator=breakdowns.HOSTILE)
        for item in ALL
    )
    breakdown = replace(breakdowns.training(), recorded=hostile)
    assert all(character.isprintable() or character == "\n" for character in page(breakdown))
    assert "<script>" not in to_html(breakdown)
    assert "KeyError at train.py:12 step" in to_html(replace(breakdown, recorded=ALL))

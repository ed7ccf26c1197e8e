"""JSON, CSV, frame and notebook: the same figures in every form."""

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest
from report import breakdowns

from torchdiag.report import breakdown_csv, breakdown_json, breakdown_rows
from torchdiag.report.breakdown_frame import to_frame
from torchdiag.report.breakdown_html import to_html
from torchdiag.timeline.result import Breakdown, Cause

MS = 1_000_000
ALL = [
    breakdowns.training,
    breakdowns.several_devices,
    breakdowns.host_only,
    lambda: breakdowns.host_only(breakdowns.NOT_RECORDED),
    breakdowns.hostile,
]


def test_the_document_has_the_names_of_the_contract():
    document = breakdown_json.to_dict(breakdowns.training())
    assert document["schema"] == 1
    assert {"path", "events", "ranks", "torch", "quality"} <= document["trace"].keys()
    assert document["trace"]["ranks"] == [0]
    step = document["steps"][0]
    names = ["name", "start_ns", "end_ns", "gpu_busy", "kernels", "launches", "syncs", "copies", "copied_bytes"]
    assert list(step)[: len(names)] == names
    device = document["devices"][0]
    assert {"id", "name", "kind", "window", "states_ns", "idle_ns", "headline_ns"} <= device.keys()
    assert list(device["window"]) == ["start_ns", "end_ns", "source"]
    assert list(device["states_ns"]) == ["compute", "communication", "memory", "transfer", "idle"]
    assert list(device["idle_ns"]) == [
        *("python", "framework", "launch", "launch_latency", "copy_call", "sync", "allocation", "runtime"),
        *("dataloader", "profiler", "queued", "unattributed", "unknown"),
    ]
    assert device["headline_ns"] == {
        "active": 246 * MS,
        "transfer": 6 * MS,
        "python_overhead": 228 * MS,
        "idle": 120 * MS,
    }
    assert device["window"] == {"start_ns": 5_000, "end_ns": 5_000 + 600 * MS, "source": "steps"}


@pytest.mark.parametrize("make", ALL)
def test_the_document_is_json_and_its_figures_sum_to_the_window(make):
    text = breakdown_json.dumps(breakdown_json.to_dict(make()))
    assert text.isascii()
    assert all(character.isprintable() or character == "\n" for character in text)
    for device in json.loads(text)["devices"]:
        length = device["window"]["end_ns"] - device["window"]["start_ns"]
        assert sum(device["states_ns"].values()) == length
        assert sum(device["headline_ns"].values()) == length
        assert sum(device["idle_ns"].values()) == device["states_ns"]["idle"]
        for cause in device["causes"]:
            assert device["idle_ns"][cause["cause"]] == cause["idle_ns"]


def test_several_documents_are_one():
    entries = [breakdown_json.body(breakdowns.training()), {"path": "x.json", "error": "it is empty"}]
    document = json.loads(breakdown_json.dumps(breakdown_json.several(entries)))
    assert document["schema"] == 1
    assert document["breakdowns"][0]["devices"][0]["id"] == 0
    assert document["breakdowns"][1] == {"path": "x.json", "error": "it is empty"}


def _read_csv(breakdown: Breakdown) -> list[dict[str, str]]:
    text = breakdown_csv.header() + breakdown_csv.lines(breakdown_rows.rows(breakdown))
    return list(csv.DictReader(io.StringIO(text)))


def test_one_line_a_device():
    rows = _read_csv(breakdowns.several_devices())
    assert [row["device"] for row in rows] == ["0", "1"]
    assert rows[0]["state_communication_ns"] == str(200 * MS)
    assert rows[1]["headline_transfer_ns"] == str(100 * MS)
    assert rows[1]["idle_sync_ns"] == str(100 * MS)
    assert rows[1]["top_cause"] == "sync"
    assert rows[1]["top_place"] == "aten::item"
    assert all(f"idle_{cause.value}_ns" in rows[0] for cause in Cause)


def test_a_trace_without_devices_still_has_its_line():
    (row,) = _read_csv(breakdowns.host_only())
    assert row["device"] == ""
    assert row["window_ns"] == str(1000 * MS)
    assert row["host_operator_ns"] == str(700 * MS)


def test_a_line_of_a_trace_is_one_line_and_no_formula():
    text = breakdown_csv.lines(breakdown_rows.rows(breakdowns.hostile()))
    assert text.count("\n") == 1
    assert "\x1b" not in text
    evil = breakdowns.device(name='=HYPERLINK("http://evil")', busy=(MS, 0, 0, 0))
    (row,) = _read_csv(Breakdown(breakdowns.summary(), (), "none", (evil,), None))
    assert row["name"].startswith("'=")


def test_an_error_is_a_line():
    text = breakdown_csv.header() + breakdown_csv.lines([breakdown_rows.error_row("x.json", "cannot read x.json")])
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["path"], row["error"], row["device"]) == ("x.json", "cannot read x.json", "")


def test_the_frame_holds_whole_nanoseconds():
    frame = to_frame(breakdowns.several_devices())
    assert list(frame["device"]) == [0, 1]
    assert str(frame["idle_python_ns"].dtype) == "Int64"
    assert frame["headline_active_ns"].sum() == 700 * MS
    assert "error" not in frame.columns
    assert to_frame(breakdowns.host_only())["headline_active_ns"].isna().all()


class _Outline(HTMLParser):
    """Collects texts and tags, and insists that tags close in order."""

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)


@pytest.mark.parametrize("make", ALL)
def test_the_fragment_is_closed_and_needs_nothing_from_outside(make):
    outline = _Outline()
    outline.feed(to_html(make()))
    outline.close()
    assert outline.open == []
    assert {tag for tag, _ in outline.tags}.isdisjoint({"script", "link", "img", "iframe", "object", "b"})
    assert not any(name in {"src", "href"} or name.startswith("on") for _, attrs in outline.tags for name in attrs)


def test_the_fragment_says_the_headline_in_words():
    text = " ".join(_parsed(breakdowns.training()).text)
    for words in ("active 41.0 %, 246 ms", "transfer 1.0 %, 6.00 ms", "Python 38.0 %, 228 ms", "idle 20.0 %, 120 ms"):
        assert words in text
    assert "dataset.py:88 __getitem__" in text


def test_bars_have_one_part_for_each_figure_that_is_not_zero():
    html = to_html(breakdowns.several_devices())
    bars = re.findall(r'<div class="td-bar".*?</div>', html)
    assert [bar.count("<i ") for bar in bars] == [2, 3]


def _parsed(breakdown: Breakdown) -> _Outline:
    outline = _Outline()
    outline.feed(to_html(breakdown))
    return outline

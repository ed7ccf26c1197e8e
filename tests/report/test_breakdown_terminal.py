"""The page and the table on a terminal: they fit, they add up, and nothing in a trace can repaint them."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report import breakdowns
from rich.cells import cell_len

from torchdiag.report.breakdown_page import compose
from torchdiag.report.breakdown_table import BreakdownTable
from torchdiag.report.breakdown_terminal import print_breakdown
from torchdiag.report.breakdown_words import answer
from torchdiag.report.terminal import canvas
from torchdiag.timeline.result import Breakdown, Cause
from torchdiag.trace.quality import Quality

MS = 1_000_000
ALL = {
    "training": breakdowns.training,
    "several": breakdowns.several_devices,
    "host": breakdowns.host_only,
    "not recorded": lambda: breakdowns.host_only(breakdowns.NOT_RECORDED),
    "hostile": breakdowns.hostile,
}
SHARE = re.compile(r"(\d+\.\d) %")


def page(breakdown: Breakdown, width: int = 80) -> str:
    stream = io.StringIO()
    print_breakdown(breakdown, canvas(stream, width))
    return stream.getvalue()


class Terminal(io.StringIO):
    """A terminal as a program sees it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def on_terminal(breakdown: Breakdown) -> str:
    stream = Terminal()
    print_breakdown(breakdown, canvas(stream, 80))
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 110, 200])
@pytest.mark.parametrize("name", ALL)
def test_every_line_fits(name, width):
    for line in page(ALL[name](), width).splitlines():
        assert cell_len(line) <= width, line


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_first_line_is_the_answer(width):
    text = " ".join(page(breakdowns.training(), width).split("\n\n")[0].split())
    assert text == (
        "GPU 0 was busy 42 % of 3 steps (600 ms); "
        "the largest loss is 38 % waiting for Python, mostly at dataset.py:88 __getitem__."
    )


def test_the_bar_is_in_proportion_and_readable_without_colour():
    bar = next(line for line in page(breakdowns.training(), 100).splitlines() if line.startswith("█"))
    assert [bar.count(fill) for fill in "█▓▒░"] == [41, 1, 38, 20]
    text = page(breakdowns.training(), 100)
    for label in (
        r"█ active +41\.0 % +246 ms",
        r"▓ transfer +1\.0 % +6\.00 ms",
        r"▒ Python +38\.0 %",
        r"░ idle +20\.0 %",
    ):
        assert re.search(label, text)


def test_a_part_that_is_anything_at_all_gets_a_cell():
    tiny = breakdowns.device(busy=(10**12, 0, 0, 1), python=(1, 1, ()))
    text = page(Breakdown(breakdowns.summary(), (), "none", (tiny,), None))
    bar = next(line for line in text.splitlines() if line.startswith("█"))
    assert (bar.count("▓"), bar.count("▒"), len(bar)) == (1, 1, 80)
    assert re.search(r"transfer +<0\.1 % +1 ns", text)


def test_the_causes_come_with_time_share_stretches_and_places():
    lines = page(breakdowns.training()).splitlines()
    python = next(number for number, line in enumerate(lines) if line.startswith("  Python"))
    assert re.search(r"38\.0 % +228 ms +1,203$", lines[python])
    assert re.search(r"dataset\.py:88 __getitem__ +20\.0 % +120 ms +300$", lines[python + 1])
    assert re.search(r"elsewhere +8\.0 % +48\.0 ms +753$", lines[python + 3])
    assert re.search(r"data loader .* 20\.0 % +120 ms +3$", lines[python + 4])


def test_an_unusual_step_is_marked_with_its_note():
    wide = page(breakdowns.training(), 140).splitlines()
    assert any(line.startswith("* ProfilerStep#2") and line.endswith("4 more copies than the others") for line in wide)
    narrow = page(breakdowns.training(), 80).splitlines()
    row = next(number for number, line in enumerate(narrow) if line.startswith("* ProfilerStep#2"))
    assert narrow[row + 1].strip() == "first: 4 more copies than the others"
    assert any(line.startswith("  ProfilerStep#3  200 ms  42.0 %    3,188") for line in narrow)


def test_a_long_step_table_is_cut_in_the_middle_and_keeps_the_unusual():
    odd = replace(breakdowns.step(50, note="evaluation"), group="b")
    steps = [odd if number == 50 else breakdowns.step(number) for number in range(100)]
    text = page(replace(breakdowns.training(), steps=tuple(steps)))
    shown = [int(number) for number in re.findall(r"ProfilerStep#(\d+)", text)]
    assert shown == [0, 1, 2, 3, 4, 5, 50, 97, 98, 99]
    assert "44 more steps (--json has all)" in text
    assert "46 more steps (--json has all)" in text
    assert "100 steps, 99 alike: 200 ms" in text


def test_a_host_page_says_that_there_was_no_gpu():
    text = page(breakdowns.host_only())
    assert text.startswith("This trace holds no GPU work")
    assert re.search(r"operators +70\.0 % +700 ms", text)


def test_unrecorded_work_is_never_called_idle():
    text = page(breakdowns.host_only(breakdowns.NOT_RECORDED))
    assert "the GPU's work was not recorded" in " ".join(text.split())
    assert "libcupti" in text
    assert "idle" not in text


def test_several_devices_have_a_block_each_in_order():
    text = page(breakdowns.several_devices())
    assert text.startswith("GPU 1 was the busiest of 2 GPUs with 83 %")
    assert text.index("GPU 0 (NVIDIA A100)") < text.index("GPU 1 (NVIDIA A100)")
    assert len([line for line in text.splitlines() if line.startswith("█") and len(line) == 80]) == 2


@pytest.mark.parametrize("name", ALL)
def test_no_escape_sequence_and_no_control_character_reaches_a_pipe(name):
    for width in (80, 200):
        text = page(ALL[name](), width)
        assert all(character.isprintable() for character in text.replace("\n", ""))


def test_a_hostile_trace_cannot_write_to_the_terminal():
    coloured = on_terminal(breakdowns.hostile())
    assert "\x1b[" in coloured
    without = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert all(character.isprintable() for character in without.replace("\n", ""))
    # Only the codes this page uses: bold, dim, five colours, and their end.
    codes = {code for group in re.findall(r"\x1b\[([0-9;]*)m", coloured) for code in group.split(";")}
    assert codes <= {"0", "1", "2", "32", "33", "35", "36", "91"}
    # Markup is text.
    assert "[bold red]" in " ".join(page(breakdowns.hostile(), 200).split())
    assert not any(line.startswith("GPU 9") for line in without.splitlines())


def test_no_color_and_a_dumb_terminal_mean_no_colour(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[32m" in on_terminal(breakdowns.training())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3\d", on_terminal(breakdowns.training()))
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in on_terminal(breakdowns.training())


def test_an_ascii_stream_gets_ascii():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    print_breakdown(replace(breakdowns.training(), trace=breakdowns.summary("漢字.json")), canvas(stream, 80))
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert "#" * 30 in text and "+" * 30 in text and "." * 15 in text
    assert "# active" in text
    assert "\\u6f22\\u5b57.json" in text


AMOUNTS = st.integers(0, 10**10)


@given(st.lists(AMOUNTS, min_size=17, max_size=17))
def test_shares_add_up_as_displayed(amounts):
    busy, idle = amounts[:4], amounts[4:]
    found = breakdowns.device(busy=tuple(busy), **{c.value: (ns, 1, ()) for c, ns in zip(Cause, idle, strict=True)})
    account = compose(Breakdown(breakdowns.summary(), (), "none", (found,), None)).accounts[0]
    whole = 1000 if sum(amounts) else 0
    states = [line for line in account.lines if line.depth == 0]
    causes = [line for line in account.lines if line.depth == 1]
    assert sum(part.tenths for part in account.parts) == whole
    assert sum(line.tenths for line in states) == whole
    assert sum(line.tenths for line in causes) == states[-1].tenths
    assert sum(line.nanoseconds for line in causes) == states[-1].nanoseconds
    for line in account.lines:
        assert abs(line.tenths - 1000 * line.nanoseconds / max(sum(amounts), 1)) < 2


def test_the_answer_names_what_is_not_known():
    found = breakdowns.device(busy=(MS, 0, 0, 0), unknown=(3 * MS, 1, ()), python=(MS, 1, ()))
    text = answer(Breakdown(breakdowns.summary(), (), "none", (found,), None))
    assert "busy 20 %" in text
    assert "60 % cannot be told" in text
    assert "20 % waiting for Python" in text


def test_the_answer_of_a_busy_device_makes_no_drama():
    found = breakdowns.device(busy=(99 * MS, 0, 0, 0), launch=(MS, 1, ()))
    assert "the largest loss is only 1.0 %" in answer(Breakdown(breakdowns.summary(), (), "none", (found,), None))
    found = breakdowns.device(busy=(99 * MS, 0, 0, 0))
    assert answer(Breakdown(breakdowns.summary(), (), "none", (found,), None)) == "GPU 0 was busy 100 % of 99.0 ms."


def table(rows, width: int) -> str:
    stream = io.StringIO()
    shown = BreakdownTable([path for path, _ in rows], canvas(stream, width))
    shown.header()
    for path, value in rows:
        if isinstance(value, str):
            shown.error(path, value)
        else:
            shown.row(path, value)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 200])
def test_the_table_has_a_row_each_and_fits(width):
    rows = [
        ("runs/a/worker0.pt.trace.json.gz", breakdowns.training()),
        ("runs/b/several.json", breakdowns.several_devices()),
        ("runs/b/cpu.json", breakdowns.host_only()),
        ("runs/b/lost.json", breakdowns.host_only(breakdowns.NOT_RECORDED)),
        ("runs/b/broken.json", "cannot read runs/b/broken.json: it is empty\x1b[31m"),
    ]
    text = table(rows, width)
    lines = text.splitlines()
    assert all(cell_len(line) <= width for line in lines)
    assert lines[0] == "in runs"
    names = ["device", "window", "active", "transfer", "python", "idle", "top", "cause"]
    assert lines[1].split() == (["file"] if width == 200 else []) + names
    assert re.search(r"worker0\.pt\.trace\.json\.gz\s+GPU 0 +600 ms +41 % +1 % +38 % +20 % +Python", text)
    assert re.search(r"several\.json\s+GPU 0 .* 50 % +0 % +50 % +0 % +Python", text)
    assert re.search(r"\n +GPU 1 .* 67 % +17 % +0 % +16 % +sync", text)
    assert re.search(r"cpu\.json\s+no GPU work", text)
    assert re.search(r"lost\.json\s+GPU work was not recorded", text)
    assert re.search(r"broken\.json\s+failed: it is empty\\x1b\[31m", text)
    assert "dataset.py:88 __getitem__" in text or width == 80


def test_causes_that_round_to_nothing_share_a_line():
    found = breakdowns.device(busy=(10**9, 0, 0, 0), launch=(10**8, 9, ()), sync=(7, 1, ()), runtime=(5, 2, ()))
    lines = page(Breakdown(breakdowns.summary(), (), "none", (found,), None)).splitlines()
    assert any(re.search(r"^  others: sync, runtime +<0\.1 % +12 ns +3$", line) for line in lines)


def test_notes_are_sentences_with_their_count():
    quality = (Quality("bad-utf8", "bytes that are no UTF-8 were replaced", 57), Quality("x", "2 events were lost", 2))
    text = page(breakdowns.training(quality=quality))
    assert "- Bytes that are no UTF-8 were replaced (57 times).\n" in text
    assert "- 2 events were lost.\n" in text

"""Progress shows on a terminal, and only to who has to wait."""

import io
import sys

import pytest

from torchdiag.report import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_offered_where_no_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.reading("trace.json") as tell:
        assert tell is None


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress.reading("trace.json") as tell:
        assert tell is not None
        for done in range(100):
            tell(done, 100)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("total", [2_000_000, None])
def test_long_work_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch, total: int | None) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    with progress.reading("[red]trace[/].json") as tell:
        assert tell is not None
        tell(1_000_000, total)
    shown = terminal.getvalue()
    assert "reading [red]trace[/].json" in shown
    assert "1.0" in shown
    assert total is None or "2.0 MB" in shown

"""What becomes of the other files when a process dies."""

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

from torchdiag.cli import many_traces
from torchdiag.cli.breakdown_options import Options
from torchdiag.cli.many_traces import Outcome, outcomes


class FragilePool:
    """A pool that breaks, for whoever comes after as well, once it is given `deadly`."""

    def __init__(self, workers):
        self.broken = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def submit(self, path, options):
        self.broken |= path == "deadly"
        future = Future()
        if self.broken:
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(Outcome(path, error=f"read {path}"))
        return future


def test_only_the_file_that_kills_its_process_is_lost(monkeypatch):
    monkeypatch.setattr(many_traces, "_Pool", FragilePool)
    found = list(outcomes(["a", "deadly", "b", "c"], Options(None, None, None, 3), lambda done: None))
    assert [outcome.path for outcome in found] == ["a", "deadly", "b", "c"]
    assert [outcome.error for outcome in found if outcome.path != "deadly"] == ["read a", "read b", "read c"]
    assert "killed" in found[1].error


def test_an_error_of_ours_is_told_apart(monkeypatch, tmp_path):
    path = tmp_path / "empty.json"
    path.write_text("")
    outcome = many_traces.break_down(str(path), Options(None, None, None, 3))
    assert outcome.error and not outcome.bug
    monkeypatch.setattr("torchdiag.api.breakdown", lambda *_, **__: 1 / 0)
    outcome = many_traces.break_down(str(path), Options(None, None, None, 3))
    assert "ZeroDivisionError" in outcome.error
    assert "Traceback" in outcome.bug

"""Sessions of torch's profiler: what is recorded, and that nobody else's is harmed."""

import gzip
import importlib.util
import json
import os
import threading

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch

from torchdiag.capture import kineto, trace_file
from torchdiag.capture.kineto import ProfilerBusyError, Session
from torchdiag.errors import TorchdiagError

CPU = torch.device("cpu")


def work(number):
    # One operator of this name in each step.
    with torch.profiler.record_function(f"work {number}"):
        torch.ones(2).add_(1)


def run(session, steps):
    session.start()
    for number in range(steps):
        work(number)
        session.step()


def names(path):
    return [event.get("name") for event in json.loads(path.read_text())["traceEvents"]]


def test_warm_up_steps_are_left_out_and_recorded_ones_are_marked(tmp_path):
    session = Session(tmp_path / "t.json", CPU, active=2, warmup=2)
    run(session, 4)
    assert session.state == "exported"
    assert session.recorded == 2
    assert not kineto.somebody_profiles()
    found = names(session.path)
    assert [name for name in found if name.startswith("work")] == ["work 2", "work 3"]
    assert [name for name in found if name.startswith("ProfilerStep#")] == ["ProfilerStep#2", "ProfilerStep#3"]


def test_at_least_one_step_is_warm_up(tmp_path):
    with pytest.raises(ValueError, match="at least one warm-up step"):
        Session(tmp_path / "t.json", CPU, active=2, warmup=0)


def test_an_active_profiler_of_somebody_else_is_left_alone(tmp_path):
    with torch.profiler.profile() as theirs:
        work(0)
        session = Session(tmp_path / "t.json", CPU, active=1)
        with pytest.raises(ProfilerBusyError):
            session.start()
        session.give_up()
        work(1)
    assert {event.name for event in theirs.events()} >= {"work 0", "work 1"}
    assert not session.path.exists()


@pytest.mark.parametrize("legacy", [False, True])
def test_a_profiler_that_somebody_starts_goes_first(tmp_path, legacy):
    session = Session(tmp_path / "t.json", CPU, active=3)
    run(session, 2)
    with torch.autograd.profiler.profile() if legacy else torch.profiler.profile() as theirs:
        work(7)
        session.step()
    assert session.state == "given up"
    recorded = theirs.function_events if legacy else theirs.events()
    assert "work 7" in {event.name for event in recorded}
    assert not session.path.exists()
    # And the next one can begin.
    run(Session(tmp_path / "u.json", CPU, active=1), 2)
    assert "work 1" in names(tmp_path / "u.json")


def test_other_threads_and_forked_children_do_not_stop_it(tmp_path):
    session = Session(tmp_path / "t.json", CPU, active=1)
    run(session, 1)
    thread = threading.Thread(target=lambda: (session.step(), session.give_up()))
    thread.start()
    thread.join()
    child = os.fork()
    if child == 0:
        session.give_up()
        session.stop_early()
        os._exit(0 if session.state == "recording" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert session.state == "recording"
    work(1)
    session.step()
    assert session.state == "exported"


def test_whole_steps_are_kept_when_it_must_end_early(tmp_path):
    session = Session(tmp_path / "t.json", CPU, active=5)
    run(session, 3)
    work(9)
    session.stop_early()
    assert (session.state, session.recorded) == ("exported", 2)
    assert {"work 1", "work 2"} <= set(names(session.path))


def test_nothing_is_kept_before_a_whole_step(tmp_path):
    session = Session(tmp_path / "t.json", CPU, active=5)
    run(session, 1)
    session.stop_early()
    assert session.state == "given up"
    assert not kineto.somebody_profiles()


def test_shapes_and_stacks_are_recorded_where_asked_for(tmp_path):
    session = Session(tmp_path / "t.json", CPU, active=1, shapes=True, stacks=True)
    run(session, 2)
    trace = json.loads(session.path.read_text())
    assert trace["with_stack"] == trace["record_shapes"] == 1
    assert any(event.get("cat") == "python_function" and ": work" in event["name"] for event in trace["traceEvents"])


def added(base):
    return [
        {"ph": "X", "cat": "torchdiag", "name": f"base {base}", "pid": 1, "tid": 1, "ts": 1.5, "dur": 1, "args": {}}
    ]


def read(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def test_events_are_added_to_an_exported_trace(tmp_path):
    session = Session(tmp_path / 'odd ]} " name.json', CPU, active=1)
    run(session, 2)
    # Kineto writes the path with its quote as it is, which no JSON reader takes.
    plain = json.loads(session.path.read_text().replace(str(session.path), "trace.json.gz"))
    trace_file.finish(session.path, tmp_path / "trace.json.gz", added)
    finished = read(tmp_path / "trace.json.gz")
    base = plain["baseTimeNanoseconds"]
    assert finished == {**plain, "traceEvents": [*plain["traceEvents"], *added(base)]}
    trace_file.extend(tmp_path / "trace.json.gz", lambda base: [*added(base), *added(base)])
    assert read(tmp_path / "trace.json.gz")["traceEvents"] == [*plain["traceEvents"], *added(base) * 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ['odd ]} " name.json', "trace.json.gz"]


@pytest.mark.parametrize(
    "text",
    [
        '{"traceEvents": []}',
        '{"a": 1,\n"traceEvents": [\n \n ],"traceName": "/x]}", "displayTimeUnit": "ms",\n"baseTimeNanoseconds": 17}\n',
        '{"traceEvents": [{"name": "]}"}], "baseTimeNanoseconds": 17}',
    ],
)
def test_the_end_of_a_trace_is_found_however_it_is_written(tmp_path, text):
    (tmp_path / "plain.json").write_text(text)
    trace_file.finish(tmp_path / "plain.json", tmp_path / "t.gz", added)
    before, after = json.loads(text), read(tmp_path / "t.gz")
    base = before.get("baseTimeNanoseconds", 0)
    assert after["traceEvents"] == [*before["traceEvents"], *added(base)]
    trace_file.finish(tmp_path / "plain.json", tmp_path / "t.gz", lambda _: [])
    assert read(tmp_path / "t.gz")["traceEvents"] == before["traceEvents"]


def test_a_cut_trace_is_refused_and_leaves_nothing(tmp_path):
    (tmp_path / "plain.json").write_text('{"traceEvents": [{"name": "a"}, {"na')
    with pytest.raises(TorchdiagError, match="not exported to its end"):
        trace_file.finish(tmp_path / "plain.json", tmp_path / "t.gz", added)
    assert [path.name for path in tmp_path.iterdir()] == ["plain.json"]

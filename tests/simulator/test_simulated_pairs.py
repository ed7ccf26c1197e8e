"""What holds of every simulated script: a trace in the form of a profiler's, and a fix that wins, or does not."""

import json
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise

import pytest
from simulator.good_programs import cold_start, healthy, latent
from simulator.kineto_form import BASE_NS, text_of
from simulator.simulated_pairs import pairs
from simulator.simulated_program import Program, Simulated, simulate
from simulator.training_script import Script

PAIRS = {pair.rule: pair for pair in pairs()}
LATENT = {pair.rule: pair for pair in latent()}
PROGRAMS = {
    **{program.name: program for pair in PAIRS.values() for program in (pair.slow, pair.fixed)},
    **{f"latent {program.name}": program for pair in LATENT.values() for program in (pair.slow, pair.fixed)},
    **{program.name: program for program in healthy()},
}


@cache
def simulated(name: str) -> Simulated:
    return simulate(PROGRAMS[name])


def nanoseconds(value: float) -> int:
    """The exact time of the decimal microseconds in the text."""
    whole, _, part = repr(value).partition(".")
    assert len(part) <= 3
    return int(whole) * 1_000 + int(part.ljust(3, "0"))


def events(name: str, *categories: str):
    return [event for event in simulated(name).trace["traceEvents"] if event.get("cat") in categories]


def spans(found) -> list[tuple[int, int]]:
    starts = [(nanoseconds(event["ts"]), nanoseconds(event["dur"])) for event in found]
    return sorted((start, start + length) for start, length in starts)


@pytest.mark.parametrize("rule", PAIRS)
def test_the_fix_wins(rule):
    slow, fixed = (simulated(f"{rule} {which}").steady_ns for which in ("slow", "fixed"))
    assert slow > 1.1 * fixed


@pytest.mark.parametrize("rule", LATENT)
def test_a_hidden_bug_costs_nothing(rule):
    slow, fixed = (simulated(f"latent {rule} {which}").steady_ns for which in ("slow", "fixed"))
    assert slow == pytest.approx(fixed, rel=0.025)


def test_there_is_a_pair_for_many_bugs():
    assert len(pairs()) == len(PAIRS) >= 40


@pytest.mark.parametrize("rule", PAIRS)
@pytest.mark.parametrize("which", ["slow", "fixed"])
def test_the_first_step_warms_up(rule, which):
    steps = simulated(f"{rule} {which}").step_ns
    assert len(steps) in (5, 6)
    assert steps[0] > 1.05 * min(steps[1:])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_steps_fill_the_time_from_the_first_mark_to_the_end_of_all_work(name):
    marks = spans(event for event in events(name, "user_annotation") if event["name"].startswith("ProfilerStep#"))
    work = spans(events(name, "kernel", "gpu_memcpy", "gpu_memset"))
    last = max(marks[-1][1], *(end for _, end in work))
    assert sum(simulated(name).step_ns) == last - marks[0][0]
    assert simulated(name).mark_ns == [end - start for start, end in marks]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_is_json_of_a_moderate_size(name):
    text = simulated(name).text()
    assert json.loads(text) == simulated(name).trace
    assert len(text) < 1_000_000


@pytest.mark.parametrize("name", PROGRAMS)
def test_spans_of_a_thread_are_nested(name):
    threads = defaultdict(list)
    for event in events(name, "cpu_op", "python_function", "cuda_runtime"):
        threads[event["tid"]].append(event)
    for found in threads.values():
        open_ends = []
        for start, end in sorted(spans(found), key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


@pytest.mark.parametrize("name", PROGRAMS)
def test_work_starts_after_its_call_began_and_a_stream_does_one_thing_at_a_time(name):
    calls = {event["args"]["correlation"]: nanoseconds(event["ts"]) for event in events(name, "cuda_runtime")}
    streams = defaultdict(list)
    for event in events(name, "kernel", "gpu_memcpy", "gpu_memset"):
        assert calls[event["args"]["correlation"]] < nanoseconds(event["ts"])
        streams[event["tid"]].append(event)
    for found in streams.values():
        ordered = spans(found)
        assert all(end <= start for (_, end), (start, _) in pairwise(ordered))


@pytest.mark.parametrize("name", PROGRAMS)
def test_links_lead_from_something_to_something(name):
    trace = simulated(name).trace["traceEvents"]
    at = Counter((event["pid"], event["tid"], event["ts"]) for event in trace if event["ph"] == "X")
    flows = Counter()
    for event in events(name, "ac2g", "fwdbwd"):
        assert at[event["pid"], event["tid"], event["ts"]]
        flows[event["cat"], event["id"], event["ph"]] += 1
    for (category, number, phase), count in flows.items():
        assert phase == "f" or count == 1
        assert flows[category, number, "s" if phase == "f" else "f"] >= 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_frames_name_the_frame_that_called_them(name):
    frames = {
        event["args"]["Python id"]: event for event in events(name, "python_function") if "Python id" in event["args"]
    }
    for number, event in frames.items():
        parent = event["args"]["Python parent id"]
        assert parent is None or (parent < number and frames[parent]["tid"] == event["tid"])
        if parent is not None:
            assert frames[parent]["ts"] <= event["ts"]


def test_the_same_seed_gives_the_same_trace_and_another_one_another():
    program = Program("any", Script().make)
    first, again, other = (simulate(program, steps=2, seed=seed) for seed in (3, 3, 4))
    assert text_of(first.trace) == text_of(again.trace)
    assert first.step_ns != other.step_ns
    assert len(first.step_ns) == 2


def test_a_fix_changes_no_more_than_the_bug():
    for pair in [*PAIRS.values(), *LATENT.values()]:
        slow, fixed = pair.slow, pair.fixed
        assert (slow.recording, slow.costs, slow.queue_depth, slow.steps) == (
            fixed.recording,
            fixed.costs,
            fixed.queue_depth,
            fixed.steps,
        )


def test_a_cold_start_spends_most_of_its_time_on_warming_up():
    cold, warm = simulate(cold_start()), simulated("sync-item-scalar fixed")
    assert len(cold.step_ns) == 1
    assert cold.step_ns[0] > 2 * warm.steady_ns


def test_microseconds_are_exact():
    event = next(event for event in events("sync-item-scalar slow", "user_annotation"))
    assert nanoseconds(event["ts"]) >= BASE_NS


@pytest.mark.parametrize("name", [program.name for program in healthy()])
def test_a_healthy_script_keeps_the_device_busy(name):
    assert simulated(name).busy_ns / sum(simulated(name).step_ns) > 0.7

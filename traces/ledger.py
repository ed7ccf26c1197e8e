"""Settles the accounts of a make-believe machine: where each nanosecond of its GPU went.

Everything here is reckoned from the machine's diary, which knows at every instant which spans were open, instant by
instant and without any sweep, so that it is a second way to the answer rather than a copy of the first. The rules are
those of `docs/partition.md`.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from machine import Activity, Machine, Span, Thread

STATES = ("compute", "communication", "memory", "transfer", "idle")
CAUSES = (
    "python", "framework", "launch", "launch_latency", "copy_call", "sync", "allocation", "runtime", "dataloader",
    "profiler", "queued", "unattributed", "unknown",
)  # fmt: skip
LATENCY_LIMIT_NS = 50_000

Written = set[Span | Activity]


class Ledger:
    """The accounts of one machine, as far as its events were `written` to the file (all of them unless said)."""

    def __init__(self, machine: Machine, *, written: Written | None = None, replays: list[tuple[int, int]]) -> None:
        every: Written = {*machine.spans, *machine.activities}
        self.machine = machine
        self.written = every if written is None else written
        self.activities = [activity for activity in machine.activities if activity in self.written]
        self.marks = [mark for mark in machine.marks if mark in self.written]
        self.replays = replays
        self.places: dict[str, Counter[tuple[str, int, str] | None]] = {cause: Counter() for cause in CAUSES}

    def window(self) -> tuple[int, int, str]:
        """From the first mark to the last one's end and the end of the work launched before that."""
        if not self.marks:
            return (min(a.start for a in self.activities), max(a.end for a in self.activities), "activity")
        end = max(mark.end for mark in self.marks)
        launched = [a.end for a in self.activities if a.launch in self.written and a.launch.start < end]
        return (min(mark.start for mark in self.marks), max([end, *launched]), "steps")

    def device(self) -> dict[str, Any]:
        """Window, states, causes and headline of the machine's device, in the words of `breakdown --json`."""
        start, end, source = self.window()
        states, gaps = Counter[str](), list[tuple[int, int]]()
        for left, right, state in self.stretches(start, end):
            states[state] += right - left
            if state == "idle" and gaps and gaps[-1][1] == left:
                gaps[-1] = (gaps[-1][0], right)
            elif state == "idle":
                gaps.append((left, right))
        causes = Counter[str]()
        for gap in gaps:
            for left, right, cause, frame in self.charges(*gap, end):
                causes[cause] += right - left
                self.places[cause][frame] += right - left
        active = states["compute"] + states["communication"] + states["memory"]
        return {
            "id": self.machine.device,
            "window": {"start_ns": start, "end_ns": end, "source": source},
            "states_ns": {state: states[state] for state in STATES},
            "idle_ns": {cause: causes[cause] for cause in CAUSES},
            "headline_ns": {
                "active": active,
                "transfer": states["transfer"],
                "python_overhead": causes["python"],
                "idle": states["idle"] - causes["python"],
            },
        }

    def stretches(self, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """The state of the device between each two neighbouring starts and ends."""
        edges = {start, end}
        for activity in self.activities:
            edges |= {edge for edge in (activity.start, activity.end) if start < edge < end}
        instants = sorted(edges)
        for left, right in pairwise(instants):
            running = {a.work for a in self.activities if a.start <= left and right <= a.end}
            yield left, right, next((state for state in STATES if state in running), "idle")

    def charges(self, a: int, b: int, window_end: int) -> Iterator[tuple[int, int, str, tuple[str, int, str] | None]]:
        """The pieces of the gap [a, b): start, end, cause, the user's frame."""
        for left, right, cause, frame in self.charges_without_replay(a, b, window_end):
            here = left
            for replay_start, replay_end in self.replays:
                lost_from, lost_to = max(here, replay_start), min(right, replay_end)
                if lost_from < lost_to:
                    yield here, lost_from, cause, frame
                    yield lost_from, lost_to, "unknown", None
                    here = lost_to
            yield here, right, cause, frame

    def charges_without_replay(
        self, a: int, b: int, window_end: int
    ) -> Iterator[tuple[int, int, str, tuple[str, int, str] | None]]:
        """As `charges`, where no graph replay hides the truth."""
        following = [x for x in self.activities if x.start == b] if b < window_end else []
        if not following:
            yield from self.host(self.machine.main, a, b)
            return
        launches = [x.launch for x in following if x.launch in self.written]
        if not launches:
            yield a, b, "unattributed", None
            return
        launch = min(launches, key=lambda call: call.start)
        if launch.end <= a:
            yield a, b, "queued", launch.user_frame
            return
        host_end = min(launch.end, b)
        latency_end = min(host_end + LATENCY_LIMIT_NS, b)
        yield from self.host(launch.thread, a, host_end)
        yield host_end, latency_end, "launch_latency", launch.user_frame
        yield latency_end, b, "queued", launch.user_frame

    def host(self, thread: Thread, a: int, b: int) -> Iterator[tuple[int, int, str, tuple[str, int, str] | None]]:
        """What `thread` did during [a, b); where it did nothing, what the main thread did."""
        here = a
        for start, end, open_spans in thread.diary:
            left, right = max(start, here), min(end, b)
            spans = [span for span in open_spans if span in self.written]
            if left >= right or not spans:
                continue
            yield from self.elsewhere(thread, here, left)
            cause = "dataloader" if any(span.loader for span in spans) else spans[-1].charge
            yield left, right, cause, spans[-1].user_frame
            here = right
        yield from self.elsewhere(thread, here, b)

    def elsewhere(self, thread: Thread, a: int, b: int) -> Iterator[tuple[int, int, str, tuple[str, int, str] | None]]:
        """A stretch in which `thread` did nothing."""
        if a < b and thread is not self.machine.main:
            yield from self.host(self.machine.main, a, b)
        elif a < b:
            yield a, b, "python", None

    def top_place(self, cause: str) -> dict[str, Any]:
        """The user's frame to which most idle time of `cause` belongs (call `device` first)."""
        ((frame, _),) = self.places[cause].most_common(1)
        if frame is None:
            raise ValueError(f"most {cause} time has no frame")
        return {"file": frame[0], "line": frame[1], "function": frame[2]}

    def steps(self) -> dict[str, list[Any]]:
        """What began during each marked step; the recipes let every step's GPU work end within it."""
        columns: dict[str, list[Any]] = {
            key: [] for key in ("name", "start_ns", "end_ns", "kernels", "launches", "syncs", "copies", "copied_bytes")
        }
        for mark in self.marks:
            work = [a for a in self.activities if mark.start <= a.start < mark.end]
            calls = [s for s in self.machine.spans if s in self.written and mark.start <= s.start < mark.end]
            copies = [a for a in work if a.kind == "memcpy"]
            columns["name"].append(mark.name)
            columns["start_ns"].append(mark.start)
            columns["end_ns"].append(mark.end)
            columns["kernels"].append(sum(a.kind == "kernel" for a in work))
            columns["launches"].append(sum(s.charge == "launch" for s in calls))
            columns["syncs"].append(sum(s.charge == "sync" for s in calls))
            columns["copies"].append(len(copies))
            columns["copied_bytes"].append(sum(a.args["bytes"] for a in copies))
        return columns

    def driver_thread(self) -> dict[str, int]:
        """How the main thread spent the marked window, for a trace without GPU work; it sums to the window."""
        start, end = min(m.start for m in self.marks), max(m.end for m in self.marks)
        spent = Counter[str]()
        covered = 0
        for left, right, spans in self.machine.main.diary:
            overlap = min(right, end) - max(left, start)
            if overlap <= 0:
                continue
            covered += overlap
            loading = any(span.loader for span in spans)
            spent["dataloader" if loading else spans[-1].kind] += overlap
        operators = [span for span in self.machine.spans if span.kind == "operator"]
        busy = [(span.start, span.end) for span in operators if span.enclosing("operator") is None]
        return {
            "window_ns": end - start,
            "operator_ns": spent["operator"],
            "runtime_ns": spent["runtime"],
            "python_ns": spent["python"] + spent["annotation"],
            "dataloader_ns": spent["dataloader"],
            "uncovered_ns": end - start - covered,
            "cpu_active_ns": sum(min(b, end) - max(a, start) for a, b in busy if min(b, end) > max(a, start)),
        }

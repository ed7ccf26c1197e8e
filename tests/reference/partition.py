"""A slow reading of the partition: cut time at every border, decide each stretch between two borders by the definition.

Independent of `torchdiag.timeline`: plain integers, dictionaries and lists.
"""

import heapq
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from reference.events import Event, Thread, activities_of, call_of, events_of, link

STATES = ("compute", "communication", "memory", "transfer", "idle")
CAUSES = (
    *("python", "framework", "launch", "launch_latency", "copy_call", "sync", "allocation", "runtime"),
    *("dataloader", "profiler", "queued", "unattributed", "unknown"),
)
HOST_KINDS = ("runtime", "overhead", "operator", "python", "annotation")
"""In the order in which the innermost is chosen among events of the same start and end."""
DATALOADER_FRAME = re.compile(r"(^|[/\\])torch[/\\]utils[/\\]data[/\\]dataloader\.py\(\d+\): __next__$")
LAUNCH_LATENCY_NS = 50_000


@dataclass(frozen=True, slots=True)
class DevicePartition:
    """Nanoseconds of one device."""

    window: tuple[int, int]
    source: str
    states: dict[str, int]
    idle: dict[str, int]
    headline: dict[str, int]


def loads_data(event: Event) -> bool:
    """Whether a host event is the data loader handing out the next batch."""
    if event.kind == "annotation":
        return event.name.startswith("enumerate(DataLoader)#") and event.name.endswith("__next__")
    return event.kind == "python" and DATALOADER_FRAME.search(event.name) is not None


class Timeline:
    """What a host thread was doing: the innermost event and the data loader, for each stretch between two borders."""

    def __init__(self, events: list[Event]) -> None:
        lasting = [event for event in events if event.end > event.start]
        self.borders = sorted({event.start for event in lasting} | {event.end for event in lasting})
        starting: dict[int, list[Event]] = defaultdict(list)
        for event in lasting:
            starting[event.start].append(event)
        self.innermost: list[Event | None] = []
        self.loading: list[bool] = []
        covering: list[tuple[Any, Event]] = []
        loaders: list[Event] = []
        for border in self.borders:
            for event in starting[border]:
                order = (-event.start, event.end, HOST_KINDS.index(event.kind), event.name, event.row)
                heapq.heappush(covering, (order, event))
                if loads_data(event):
                    loaders.append(event)
            while covering and covering[0][1].end <= border:
                heapq.heappop(covering)
            loaders = [event for event in loaders if event.end > border]
            self.innermost.append(covering[0][1] if covering else None)
            self.loading.append(bool(loaders))

    def at(self, instant: int) -> tuple[Event | None, bool]:
        place = bisect_right(self.borders, instant) - 1
        return (None, False) if place < 0 else (self.innermost[place], self.loading[place])

    def borders_in(self, start: int, end: int) -> list[int]:
        return self.borders[bisect_right(self.borders, start) : bisect_left(self.borders, end)]


NOBODY = Timeline([])


class Host:
    """The host threads of a trace and the one that drives it."""

    def __init__(self, events: list[Event]) -> None:
        self.by_thread: dict[Thread, list[Event]] = defaultdict(list)
        for event in events:
            if event.kind in HOST_KINDS:
                self.by_thread[event.thread].append(event)
        self.marks = [
            event for event in events if event.kind == "annotation" and event.name.startswith("ProfilerStep#")
        ]
        self.marks.sort(key=lambda mark: (mark.start, mark.end, mark.row))
        self.timelines: dict[Thread, Timeline] = {}
        self.driver = self.timeline(self.driver_thread()) if self.driver_thread() else NOBODY

    def driver_thread(self) -> Thread | None:
        marks = Counter(mark.thread for mark in self.marks)
        launches = {
            thread: [event.start for event in events if event.kind == "runtime" and call_of(event.name) == "launch"]
            for thread, events in self.by_thread.items()
        }
        able = [thread for thread in self.by_thread if marks[thread] or launches[thread]]
        ranked = [
            (-marks[t], -len(launches[t]), min(launches[t], default=2**70), (str(t[0]), str(t[1])), t) for t in able
        ]
        return min(ranked, key=lambda rank: rank[:4])[-1] if ranked else None

    def timeline(self, thread: Thread) -> Timeline:
        if thread not in self.timelines:
            self.timelines[thread] = Timeline(self.by_thread.get(thread, []))
        return self.timelines[thread]

    def causes(self, start: int, end: int, timeline: Timeline) -> list[tuple[int, int, str]]:
        """The stretches of [start, end) as seen from a thread, and from the driver where that has nothing."""
        inner = set(timeline.borders_in(start, end)) | set(self.driver.borders_in(start, end))
        borders = [start, *sorted(inner), end]
        stretches = []
        for left, right in pairwise(borders):
            event, loading = timeline.at(left)
            if event is None:
                event, loading = self.driver.at(left)
            stretches.append((left, right, "dataloader" if loading else cause_of(event)))
        return stretches


def cause_of(event: Event | None) -> str:
    if event is None:
        return "python"
    if event.kind == "runtime":
        return call_of(event.name)
    return {"operator": "framework", "overhead": "profiler"}.get(event.kind, "python")


def partition(
    raw: list[Any], *, steps: slice | None = None, window: tuple[int, int] | None = None
) -> dict[int, DevicePartition]:
    """Every device of a trace, by id. `steps` selects among the marks, `window` is [start, end) in the trace's clock.

    Raises ValueError where a selection holds nothing.
    """
    events = events_of(raw)
    activities = activities_of(events)
    link(raw, events, activities)
    host = Host(events)
    marks = host.marks if steps is None else host.marks[steps]
    if (steps is not None and not marks) or (window is not None and window[0] >= window[1]):
        raise ValueError("nothing selected")
    result = {}
    for device in sorted({activity.device for activity in activities}):
        own = [activity for activity in activities if activity.device == device]
        if window is not None:
            span, source = window, "selection"
        elif marks:
            span, source = marked_window(marks, own), "steps"
        else:
            span, source = (min(item.start for item in own), max(item.end for item in own)), "activity"
        states, gaps = states_of(own, *span)
        replays = replay_windows(events, activities, span[1])
        idle = dict.fromkeys(CAUSES, 0)
        starting: dict[int, list[Event]] = defaultdict(list)
        for activity in own:
            starting[activity.start].append(activity)
        for start, end in gaps:
            following = None if end == span[1] else starting[end]
            for left, right, cause in gap_causes(start, end, following, host):
                unseen = covered(left, right, replays)
                idle["unknown"] += unseen
                idle[cause] += right - left - unseen
        result[device] = DevicePartition(span, source, states, idle, headline_of(states, idle))
    return result


def headline_of(states: dict[str, int], idle: dict[str, int]) -> dict[str, int]:
    return {
        "active": states["compute"] + states["communication"] + states["memory"],
        "transfer": states["transfer"],
        "python_overhead": idle["python"],
        "idle": sum(idle[cause] for cause in CAUSES if cause != "python"),
    }


def marked_window(marks: list[Event], own: list[Event]) -> tuple[int, int]:
    end = max(mark.end for mark in marks)
    caused = [activity.end for activity in own if activity.launch is not None and activity.launch.start < end]
    return min(mark.start for mark in marks), max([end, *caused])


def states_of(own: list[Event], start: int, end: int) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Nanoseconds in each state, and the maximal idle intervals."""
    changes: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for activity in own:
        left, right = max(activity.start, start), min(activity.end, end)
        if left < right:
            changes[left].append((activity.work, 1))
            changes[right].append((activity.work, -1))
    running: Counter[str] = Counter()
    states = dict.fromkeys(STATES, 0)
    gaps: list[tuple[int, int]] = []
    borders = sorted({start, end} | set(changes))
    for left, right in pairwise(borders):
        for work, change in changes[left]:
            running[work] += change
        state = next((state for state in STATES if running[state] > 0), "idle")
        states[state] += right - left
        if state == "idle":
            gaps.append((left, right))
    return states, gaps


def gap_causes(start: int, end: int, following: list[Event] | None, host: Host) -> list[tuple[int, int, str]]:
    """The causes of a gap; `following` are the activities that start at its end, None where that ends the window."""
    if following is None:
        return host.causes(start, end, host.driver)
    launches = [activity.launch for activity in following if activity.launch is not None]
    if not launches:
        return [(start, end, "unattributed")]
    first = min(launches, key=lambda call: (call.start, call.end, call.name, call.row))
    if first.end <= start:
        return [(start, end, "queued")]
    submitted = min(first.end, end)
    landed = min(submitted + LAUNCH_LATENCY_NS, end)
    rest = [(submitted, landed, "launch_latency"), (landed, end, "queued")]
    return host.causes(start, submitted, host.timeline(first.thread)) + rest


def replay_windows(events: list[Event], activities: list[Event], window_end: int) -> list[tuple[int, int]]:
    """Times in which graphs ran whose kernels the trace does not hold; disjoint."""
    replayed = {activity.launch.row for activity in activities if activity.launch is not None}
    syncs = [event for event in events if event.kind == "runtime" and call_of(event.name) == "sync"]
    found = []
    for call in events:
        if call.kind != "runtime" or "GraphLaunch" not in call.name or call.row in replayed:
            continue
        ends = [window_end]
        later = [sync for sync in syncs if sync.start >= call.end]
        if later:
            ends.append(min(later, key=lambda sync: (sync.start, sync.end)).end)
        ends += [item.start for item in activities if item.launch is not None and item.launch.start >= call.end]
        found.append((call.start, min(ends)))
    merged: list[tuple[int, int]] = []
    for left, right in sorted(found):
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        elif left < right:
            merged.append((left, right))
    return merged


def covered(start: int, end: int, intervals: list[tuple[int, int]]) -> int:
    return sum(max(0, min(end, right) - max(start, left)) for left, right in intervals)

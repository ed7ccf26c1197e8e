"""What the events of a trace are and which call launched which work, read slowly from parsed JSON.

Independent of `torchdiag.timeline` and of the vocabulary of `torchdiag.trace`: a small reading of the contract's own
words, so that a wrong table shows.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from reference.reader import integer_of, is_text, nanoseconds, place_of, raw_text
from torchdiag.trace.columns import MISSING

KIND_BY_CATEGORY = {
    **dict.fromkeys(("cpu_op", "Operator"), "operator"),
    **dict.fromkeys(
        ("cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime", "mtia_runtime", "Runtime"), "runtime"
    ),
    **dict.fromkeys(("kernel", "Kernel"), "kernel"),
    **dict.fromkeys(("gpu_memcpy", "Memcpy"), "memcpy"),
    **dict.fromkeys(("gpu_memset", "Memset"), "memset"),
    **{"python_function": "python", "user_annotation": "annotation", "overhead": "overhead"},
}
LAUNCH_FLOWS = ("ac2g", "async_cpu_to_gpu", "async", "cpu_to_cuda")
COMMUNICATION = ("nccl", "rccl", "oneccl", "hccl", "msccl", "nvshmem", "deep_ep", "multimem_all_reduce")
ALLOCATION = (
    "Malloc",
    "Alloc",
    "Free",
    "HostRegister",
    "HostUnregister",
    "MemMap",
    "MemUnmap",
    "MemCreate",
    "AddressReserve",
)
CORRELATION = ("correlation", "Correlation ID", "correlation_id", "connection_id")
EXTERNAL = ("External id", "external id")
OVERRUN_NS = 1_000_000
FAR_NS = 86_400 * 10**9

Thread = tuple[int | str | None, int | str | None]


@dataclass(slots=True)
class Event:
    """One event with a duration."""

    row: int
    name: str
    kind: str
    start: int
    end: int
    thread: Thread
    args: dict[str, Any]
    device: int = 0
    work: str = ""
    launch: "Event | None" = None


def kind_of(event: dict[str, Any]) -> str | None:
    category, name = event.get("cat"), event.get("name") or ""
    if category is None:
        return {"CPU functions": "operator", "CUDA functions": "kernel"}.get(str(event.get("pid")))
    if category == "Operator" and str(name).startswith(("ProfilerStep", "Optimizer.", "enumerate(")):
        return "annotation"
    if category == "mtia_ccp_events":
        return {"dma_request": "memcpy", "event_wait": None, "event_record": None}.get(str(name), "kernel")
    return KIND_BY_CATEGORY.get(category)


def call_of(name: str) -> str:
    """The cause that a runtime call stands for."""
    copies = "memcpy" in name.lower()
    if re.search(r"(Stream|Device|Event|Ctx|Host)Synchronize$", name) or name in ("synchronizeStream", "synchronize"):
        return "sync"
    if copies and "Async" not in name:
        return "sync"
    if any(word in name for word in ALLOCATION):
        return "allocation"
    if "Launch" in name or name == "runFunction - job_prep_and_submit_for_execution":
        return "launch"
    return "copy_call" if copies or "memset" in name.lower() else "runtime"


def work_of(kind: str, name: str, args: dict[str, Any]) -> str:
    """The state that a device activity puts its device in."""
    text = name.lower()
    if kind == "kernel":
        communicates = not text.startswith("triton_") and any(word in text for word in COMMUNICATION)
        return "communication" if communicates else "compute"
    if kind == "memset":
        return "memory"
    text += " " + str(args.get("direction", "")).lower().replace("_", "")
    if re.search(r"ptop|p2p|peer", text):
        return "communication"
    if re.search(r"htod|dtoh|hosttodevice|devicetohost", text):
        return "transfer"
    ends = integer_of(args.get("fromDevice")), integer_of(args.get("toDevice"))
    return "communication" if None not in ends and ends[0] != ends[1] else "memory"


def events_of(raw: list[Any]) -> list[Event]:
    """Events with a duration that count: none of negative length, none at a time of 0 in a trace that lies far away."""
    timed = []
    for row, event in enumerate(item for item in raw if isinstance(item, dict)):
        if event.get("ph") != "X":
            continue
        start, length = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        if MISSING not in (start, length):
            timed.append((row, event, start, length))
    starts = sorted(start for _, _, start, _ in timed)
    far = bool(starts) and starts[len(starts) // 2] > FAR_NS
    found = []
    for row, event, start, length in timed:
        kind = kind_of(event)
        if kind is None or length < 0 or (start == 0 and far):
            continue
        args = event["args"] if isinstance(event.get("args"), dict) else {}
        name = event["name"] if is_text(event.get("name")) else ""
        thread = (place_of(event.get("pid")), place_of(event.get("tid")))
        found.append(Event(row, name, kind, start, start + length, thread, args))
    return found


def argument(event: Event, *keys: str) -> int | None:
    """The number under one of the keys, the last of the text where there are several."""
    found = None
    for key, value in event.args.items():
        if key in keys and integer_of(value) is not None:
            found = integer_of(value)
    return found


def activities_of(events: list[Event]) -> list[Event]:
    """Device activities with their device, work, and duration cut where it cannot be true."""
    found = [event for event in events if event.kind in ("kernel", "memcpy", "memset")]
    lanes: dict[tuple[int, int | None], list[Event]] = defaultdict(list)
    for event in found:
        device = argument(event, "device")
        if device is None:
            device = event.thread[0] if isinstance(event.thread[0], int) else 0
        event.device = device
        event.work = work_of(event.kind, event.name, event.args)
        lanes[device, argument(event, "stream", "stream_id", "Stream Id")].append(event)
    for lane in lanes.values():
        starts = sorted(event.start for event in lane)
        for event in lane:
            later = bisect_right(starts, event.start)
            if later < len(starts) and event.end - starts[later] > OVERRUN_NS:
                event.end = starts[later]
    return found


def submits(call: Event) -> bool:
    """Whether a runtime call is one that hands work to the device."""
    kind = call_of(call.name)
    return kind in ("launch", "copy_call") or (kind == "sync" and "memcpy" in call.name.lower())


def link(raw: list[Any], events: list[Event], activities: list[Event]) -> None:
    """Give each activity the call that launched it: by correlation, else by flow, else by External id."""
    calls = [event for event in events if event.kind == "runtime"]
    by_correlation: dict[int, list[Event]] = defaultdict(list)
    for call in calls:
        by_correlation[argument(call, *CORRELATION) or 0].append(call)
    flows = Flows(raw, events)
    by_external: dict[int, list[Event]] = defaultdict(list)
    for call in filter(submits, calls):
        by_external[argument(call, *EXTERNAL) or 0].append(call)
    left: dict[int, list[Event]] = defaultdict(list)
    for activity in activities:
        correlation = argument(activity, *CORRELATION) or 0
        candidates = by_correlation.get(correlation, []) if correlation else []
        if candidates:
            activity.launch = min(candidates, key=lambda call: (not submits(call), call.start, call.row))
            continue
        activity.launch = flows.launch_of(activity)
        if activity.launch is None and not correlation:
            left[argument(activity, *EXTERNAL) or 0].append(activity)
    for identity, waiting in left.items():
        sharing = sorted(by_external[identity], key=lambda call: (call.start, call.row))
        if not identity or not sharing:
            continue
        waiting.sort(key=lambda activity: (activity.start, activity.row))
        for place, activity in enumerate(waiting):
            activity.launch = sharing[place] if len(sharing) == len(waiting) else sharing[0]


class Flows:
    """The arrows from the host to the device."""

    def __init__(self, raw: list[Any], events: list[Event]) -> None:
        self.sources: dict[Any, list[tuple[int, int, Thread]]] = defaultdict(list)
        self.targets: dict[tuple[Thread, int], list[Any]] = defaultdict(list)
        self.hosts: dict[tuple[Thread, int], list[Event]] = defaultdict(list)
        for event in events:
            if event.kind in ("runtime", "operator"):
                self.hosts[event.thread, event.start].append(event)
        for row, event in enumerate(item for item in raw if isinstance(item, dict)):
            if event.get("cat") not in LAUNCH_FLOWS or event.get("id") is None or event.get("ph") not in ("s", "f"):
                continue
            number = integer_of(event["id"])
            identity = raw_text(event["id"]) if number is None else number
            thread = (place_of(event.get("pid")), place_of(event.get("tid")))
            time = nanoseconds(event.get("ts"))
            if event["ph"] == "s":
                self.sources[identity].append((time, row, thread))
            else:
                self.targets[thread, time].append(identity)

    def launch_of(self, activity: Event) -> Event | None:
        for identity in self.targets.get((activity.thread, activity.start), []):
            for time, _, thread in sorted(self.sources.get(identity, []), key=lambda source: source[:2]):
                here = self.hosts.get((thread, time), [])
                calls = [event for event in here if event.kind == "runtime"]
                if calls:
                    return min(calls, key=lambda call: (not submits(call), call.row))
                if here:
                    return min(here, key=lambda operator: (operator.end, operator.row))
        return None

"""Traces written by hand: one function an event, nanoseconds as integers, and the JSON text of it all."""

import json
from typing import Any

from reference.reader import Number, parse

Event = dict[str, Any]
ENDS = {"H": "Pinned", "D": "Device", "P": "Device"}
LAYOUTS = ("compact", "pretty", "kineto")


def microseconds(ns: int) -> Number:
    """The decimal text of a time, as Kineto writes it."""
    return Number(f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03}")


def event(category: str | None, name: str, start: int, length: int, place: tuple[Any, Any], args: Event) -> Event:
    head = {} if category is None else {"cat": category}
    times = {"ts": microseconds(start), "dur": microseconds(length)}
    return {"ph": "X", **head, "name": name, "pid": place[0], "tid": place[1], **times, "args": args}


def kernel(
    start: int, length: int, correlation: int = 0, *, name: str = "gemm", device: int = 0, stream: int = 7
) -> Event:
    args = {"device": device, "stream": stream, "correlation": correlation}
    return event("kernel", name, start, length, (device, stream), args)


def copy(
    start: int, length: int, correlation: int = 0, *, kind: str = "HtoD", device: int = 0, stream: int = 7
) -> Event:
    args = {"device": device, "stream": stream, "correlation": correlation, "bytes": 4096}
    return event(
        "gpu_memcpy", f"Memcpy {kind} ({ENDS[kind[0]]} -> {ENDS[kind[-1]]})", start, length, (device, stream), args
    )


def fill(start: int, length: int, correlation: int = 0, *, device: int = 0, stream: int = 7) -> Event:
    args = {"device": device, "stream": stream, "correlation": correlation, "bytes": 4096}
    return event("gpu_memset", "Memset (Device)", start, length, (device, stream), args)


def call(start: int, length: int, correlation: int = 0, *, name: str = "cudaLaunchKernel", thread: int = 1) -> Event:
    return event("cuda_runtime", name, start, length, (100, thread), {"correlation": correlation})


def operator(start: int, length: int, name: str = "aten::mm", *, thread: int = 1) -> Event:
    return event("cpu_op", name, start, length, (100, thread), {})


def frame(
    start: int, length: int, name: str = "train.py(88): step", *, thread: int = 1, called_from: str | None = None
) -> Event:
    args = {} if called_from is None else {"CallFrom": called_from}
    return event("python_function", name, start, length, (100, thread), args)


def annotation(start: int, length: int, name: str, *, thread: int = 1) -> Event:
    return event("user_annotation", name, start, length, (100, thread), {})


def mark(number: int, start: int, length: int, *, thread: int = 1) -> Event:
    return annotation(start, length, f"ProfilerStep#{number}", thread=thread)


def overhead(start: int, length: int, *, thread: int = 1) -> Event:
    return event("overhead", "Activity Buffer Request", start, length, (100, thread), {})


def arrow(phase: str, identity: int, time: int, place: tuple[Any, Any], category: str = "ac2g") -> Event:
    """One end of a flow, `s` on the host or `f` on the device."""
    here = {"pid": place[0], "tid": place[1], "ts": microseconds(time)}
    return {"ph": phase, "id": identity, "cat": category, "name": category, **here, "bp": "e"}


def json_text(events: list[Event], layout: str = "compact", *, bare: bool = False) -> str:
    """The events as one JSON document; `bare` leaves the object around `traceEvents` away."""
    if layout == "compact":
        body = "[" + ",".join(value_text(item, ",", ":") for item in events) + "]"
    elif layout == "pretty":
        body = "[\n" + ",\n".join(pretty_text(item, 2) for item in events) + "\n]"
    else:
        body = "[\n" + ",\n".join(kineto_text(item) for item in events) + "\n  ]"
    return body if bare else f'{{\n  "schemaVersion": 1,\n  "traceEvents": {body},\n  "traceName": "by hand"\n}}\n'


def value_text(value: Any, comma: str = ", ", colon: str = ": ") -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        pairs = (json.dumps(key) + colon + value_text(item, comma, colon) for key, item in value.items())
        return "{" + comma.join(pairs) + "}"
    if isinstance(value, list):
        return "[" + comma.join(value_text(item, comma, colon) for item in value) + "]"
    return json.dumps(value, ensure_ascii=comma != ",")


def pretty_text(value: Any, depth: int) -> str:
    pad = "  " * depth
    if isinstance(value, dict) and value:
        pairs = (f"{pad}  {json.dumps(key)}: {pretty_text(item, depth + 1).lstrip()}" for key, item in value.items())
        return pad + "{\n" + ",\n".join(pairs) + "\n" + pad + "}"
    return pad + value_text(value)


def kineto_text(item: Event) -> str:
    """An event over several lines, as Kineto breaks them: the head, the times, the arguments."""
    lines = ["    " + ", ".join(f'"{key}": {value_text(item[key])}' for key in keys) for keys in line_keys(item)]
    if isinstance(item.get("args"), dict):
        pairs = [f"      {json.dumps(key)}: {value_text(value)}" for key, value in item["args"].items()]
        lines.append('    "args": {\n' + ", ".join(pairs) + "\n    }")
    return "  {\n" + ",\n".join(lines) + "\n  }"


def line_keys(item: Event) -> list[list[str]]:
    times = [key for key in ("ts", "dur") if key in item]
    head = [key for key in item if key not in times and not isinstance(item[key], dict)]
    return [keys for keys in (head, times) if keys]


def parsed(events: list[Event]) -> list[Event]:
    """The events as the slow references take them."""
    return parse(json_text(events))[0]

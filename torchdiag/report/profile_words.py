"""What is said about a run: what was run on what, how fast it was, and what went wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final

from torchdiag.history.run_result import OUTPUT, Environment, Failure, PassResult, RunResult
from torchdiag.report.figures import count, counted, duration, size
from torchdiag.report.plain_text import plain, shorten
from torchdiag.report.recorded_page import often

_LONGEST_NAME: Final = 60
_FOUND: Final = {
    "optimizer": "A step is one step of the optimizer.",
    "dataloader": "A step is one iteration of the DataLoader.",
    "step()": "A step ends with a call of step().",
    "time": "No steps were found: what is called a step here is a stretch of time.",
}
_UNSTEADY: Final = 1.25
"""Where the upper quartile of the step times is this many times the lower one, small ratios say nothing."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a run's head: a name, its figure, and what is to be known about it."""

    name: str
    figure: str
    remark: str


def title(result: RunResult) -> str:
    """`yolov3, training, batch 2 (tiny), fp32, on CPU (AMD EPYC, 2 threads), torch 2.14.1`."""
    options = result.options
    parts = [plain(" ".join([options.target, *options.script_args]))]
    if options.target_kind == "module":
        parts[0] = f"python -m {parts[0]}"
    if options.target_kind == "model":
        parts.append("training" if options.mode == "train" else "inference")
    if result.batch_size is not None:
        parts.append(f"batch {count(result.batch_size)}" + (f" ({result.size} size)" if result.size else ""))
    if options.target_kind == "model" or options.dtype != "fp32":
        parts.append(options.dtype)
    if options.compile is not None:
        parts.append("compiled" + ("" if options.compile == "default" else f" ({options.compile})"))
    if options.channels_last:
        parts.append("channels last")
    machine = _machine(result.environment)
    return ", ".join(parts) + (f", on {machine}" if machine else "")


def figures(result: RunResult) -> list[Figure]:
    """The lines of a run's head."""
    found = [_step(result), _recorded(result), _memory(result), _exceptions(result), _recorder(result)]
    return [figure for figure in found if figure is not None]


def notes(result: RunResult) -> list[str]:
    """What was not as asked for, one sentence a pass, after what there is to know about the model."""
    said = [f"{done.name} pass: {plain(done.note).rstrip('.')}." for done in result.passes if done.note]
    if result.model_note:
        said.insert(0, f"{plain(result.options.target)}: {plain(result.model_note)}.")
    source = result.steps_found_by
    if source in _FOUND:
        said.append(_FOUND[source])
    timed = result.find("timed")
    if timed is not None and len(timed.samples_ns) > 3:
        low, high = _middle_half(sorted(timed.samples_ns))
        if high > _UNSTEADY * low:
            said.append(
                "Step times vary much: something else may be using this machine, or steps differ. Small differences "
                "between passes mean nothing here."
            )
    return said


def how_to_open(folder: Path) -> str:
    """One line on how to see the trace."""
    return f"See it in Perfetto: torchdiag open {quote(str(folder))}"


def interrupted(result: RunResult, folder: Path) -> str:
    """What became of a run that was interrupted."""
    done = [item.name for item in result.passes]
    kept = f"; what was measured ({', '.join(done)}) is in {folder}" if done else ""
    return f"interrupted{kept}"


def failed(failure: Failure, folder: Path) -> str:
    """Why a run failed, with the last lines of what the target printed, and where the rest is."""
    lines = [failure.message]
    last = failure.output_tail or failure.traceback.rstrip()
    if last:
        lines += ["", *(f"  | {line}" for line in last.splitlines()), ""]
    if (folder / OUTPUT).is_file():
        lines.append(f"All of its output: {folder / OUTPUT}")
    return "\n".join(lines)


def _machine(environment: Environment) -> str:
    device = plain(environment.device)
    names = [plain(gpu.name) for gpu in environment.gpus]
    if device.startswith(("cuda", "xpu")) and names:
        index = device.partition(":")[2]
        number = int(index) if index.isdigit() and int(index) < len(names) else 0
        machine = f"{device} ({shorten(names[number], _LONGEST_NAME)})"
    elif device in {"", "cpu"}:
        known = [shorten(plain(environment.cpu), _LONGEST_NAME)] if environment.cpu else []
        known += [counted(environment.threads, "thread")] if environment.threads is not None else []
        machine = f"CPU ({', '.join(known)})" if known else "CPU" if device else ""
    else:
        machine = device
    if environment.torch:
        machine += f"{', ' if machine else ''}torch {plain(environment.torch)}"
    return machine


def _step(result: RunResult) -> Figure | None:
    timed = result.find("timed")
    if timed is None or timed.median_ns is None:
        return None
    samples = sorted(timed.samples_ns)
    spread = f"median of {counted(len(samples), 'step')} without the profiler"
    if len(samples) > 1:
        low, high = _middle_half(samples)
        spread += f"; half of them {_span(low, high)}, all {_span(samples[0], samples[-1])}"
    if timed.device_step_ns is not None:
        host = PassResult(name="timed", step_ns=timed.step_ns).median_ns
        spread += f"; the host's part {duration(host or 0)}"
    rate = result.samples_per_s
    if rate is not None:
        spread += f"; {rate:,.0f} samples a second" if rate >= 100 else f"; {rate:.3g} samples a second"
    return Figure("step", duration(timed.median_ns), spread)


def _recorded(result: RunResult) -> Figure | None:
    light, detailed, watched = (result.inflation(name) for name in ("light", "detailed", "exceptions"))
    others = [
        f"{_times(ratio)} {words}"
        for ratio, words in ((detailed, "with stacks and shapes"), (watched, "while exceptions were watched"))
        if ratio is not None
    ]
    if light is None:
        return Figure("recorded", "", f"a step took {', '.join(others)}") if others else None
    remark = "as long a step while it was recorded for the figures below" + "".join(f"; {other}" for other in others)
    return Figure("recorded", _times(light), remark)


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:,.0f} times"


def _memory(result: RunResult) -> Figure | None:
    memory = result.memory
    if memory is None:
        return None
    process = f"{size(memory.peak_rss_bytes)} in the process" if memory.peak_rss_bytes is not None else ""
    if memory.gpu_peak_allocated_bytes is None:
        if memory.peak_rss_bytes is None:
            return None
        return Figure("memory", size(memory.peak_rss_bytes), "peak of the process, up to the last timed step")
    remark = "peak of the GPU's tensors in the timed steps"
    if memory.gpu_peak_reserved_bytes is not None:
        remark += f", {size(memory.gpu_peak_reserved_bytes)} reserved"
    if memory.gpu_allocation_retries:
        remark += f", {counted(memory.gpu_allocation_retries, 'retry', 'retries')} for lack of memory"
    return Figure("memory", size(memory.gpu_peak_allocated_bytes), remark + (f"; {process}" if process else ""))


def _exceptions(result: RunResult) -> Figure | None:
    recorder = result.recorder
    if recorder is None or not recorder.steps:
        return None
    steps = recorder.steps
    kinds: list[str] = []
    total = 0
    for found, language in ((recorder.exceptions, "Python"), (recorder.throws, "C++")):
        if found is None:
            kinds.append(f"{language} not recorded")
            continue
        number = sum(place.count for place in found)
        total += number
        kinds.append(f"{often(number, steps)} in {language}")
    collections = sum(item.count for item in recorder.collections)
    warned = sum(item.count for item in recorder.warnings)
    known = recorder.exceptions is not None or recorder.throws is not None
    remark = f"{', '.join(kinds)}; {_noun(collections, steps, 'garbage collection')}"
    remark += f", {_noun(warned, steps, 'warning')} (over {counted(steps, 'step')})"
    return Figure("exceptions", f"{often(total, steps)} a step" if known else "unknown", remark)


def _recorder(result: RunResult) -> Figure | None:
    recorder = result.recorder
    if recorder is None or recorder.exception_cost_ns is None:
        return None
    remark = f"added to each Python exception by {recorder.mechanism or 'the recorder'}"
    if recorder.call_cost_ns:
        remark += f", {duration(round(recorder.call_cost_ns))} to each call of a Python function"
    return Figure("recorder", duration(round(recorder.exception_cost_ns)), f"{remark}, in a pass of its own")


def _noun(number: int, steps: int, noun: str) -> str:
    figure = often(number, steps)
    return f"{figure} {noun if figure == '1' else noun + 's'}"


def _middle_half(ordered: Sequence[int]) -> tuple[int, int]:
    """The lower and the upper quartile: the samples nearest to a quarter from either end."""
    last = len(ordered) - 1
    return ordered[round(last / 4)], ordered[round(last * 3 / 4)]


def _span(low: int, high: int) -> str:
    first, second = duration(low), duration(high)
    if first.split()[1] == second.split()[1]:
        return f"{first.split()[0]} to {second}"
    return f"{first} to {second}"

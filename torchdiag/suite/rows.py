"""The outcomes of a suite as a flat table, one row a run: what the Parquet file and the CSV hold."""

import json
from typing import Any, Final

import msgspec

from torchdiag.suite.outcome import COUNTERS, Outcome

Cell = int | float | str | None
ColumnType = type[int] | type[float] | type[str]

COLUMNS: Final[dict[str, ColumnType]] = {
    "run": str,
    "group": str,
    "process": int,
    "subject": str,
    "domain": str,
    "task": str,
    "mode": str,
    "device": str,
    "dtype": str,
    "compile": str,
    "size": str,
    "batch_size": int,
    "status": str,
    "kind": str,
    "message": str,
    "problem": str,
    "began": str,
    "wall_s": float,
    "jobs": int,
    "device_name": str,
    "torch": str,
    "parameters": int,
    "step_ns": int,
    "samples_per_s": float,
    "peak_rss_bytes": int,
    "gpu_peak_allocated_bytes": int,
    "gpu_peak_reserved_bytes": int,
    "window_ns": int,
    "active_ns": int,
    "transfer_ns": int,
    "python_ns": int,
    "idle_ns": int,
    "host_window_ns": int,
    "host_operator_ns": int,
    "host_runtime_ns": int,
    "host_python_ns": int,
    "host_dataloader_ns": int,
    "host_uncovered_ns": int,
    "steps_ns": int,
    "environment_ns": int,
    **dict.fromkeys((f"{name}_per_step" for name in COUNTERS), float),
    "distinct_operators": int,
    "distinct_functions": int,
    "findings": str,
    "tuned_batch": int,
    "model_note": str,
}
"""Names and types of the columns; stable, new ones are added at the end. A `..._per_step` is a mean over its steps."""

_HOST: Final = ("operator_ns", "runtime_ns", "python_ns", "dataloader_ns", "uncovered_ns")


def row(outcome: Outcome) -> dict[str, Cell]:
    """One run as a row; None where a column means nothing."""
    case, options, figures = outcome.case, outcome.case.options, outcome.figures
    cells: dict[str, Any] = dict.fromkeys(COLUMNS)
    cells |= {
        "run": case.id,
        "group": case.group,
        "process": case.process,
        "subject": case.subject,
        "domain": case.domain,
        "task": case.task,
        "mode": case.mode,
        "device": options.device,
        "dtype": options.dtype,
        "compile": options.compile,
        "size": options.size,
        "batch_size": options.batch_size if isinstance(options.batch_size, int) else None,
        "status": outcome.status,
        "kind": outcome.kind,
        "message": outcome.message,
        "problem": outcome.problem,
        "began": outcome.began,
        "wall_s": outcome.wall_s,
        "jobs": outcome.jobs,
        "tuned_batch": outcome.tuned_batch,
    }
    if outcome.findings is not None:
        cells["findings"] = json.dumps([msgspec.to_builtins(finding) for finding in outcome.findings])
    if figures is None:
        return cells
    same = ("device_name", "torch", "parameters", "step_ns", "samples_per_s", "peak_rss_bytes", "environment_ns")
    cells |= {name: getattr(figures, name) for name in (*same, "gpu_peak_allocated_bytes", "gpu_peak_reserved_bytes")}
    cells["batch_size"] = figures.batch_size
    cells["size"] = figures.size
    cells["model_note"] = figures.model_note or None
    cells["steps_ns"] = figures.steps_ns or None
    if figures.device is not None:
        cells |= msgspec.structs.asdict(figures.device)
    if figures.host is not None:
        cells["host_window_ns"] = figures.host.window_ns
        cells |= {f"host_{name}": getattr(figures.host, name) for name in _HOST}
    for name in COUNTERS:
        counts: tuple[int, ...] = getattr(figures.counters, name)
        cells[f"{name}_per_step"] = sum(counts) / len(counts) if counts else None
    cells["distinct_operators"] = len(figures.operators) or None
    cells["distinct_functions"] = None if figures.functions is None else len(figures.functions)
    return cells

"""What `suite coverage` says, as a page and as JSON."""

from typing import Any

from torchdiag.suite.coverage import MLPERF_LIKE, PAPER_RATIO, Coverage, Covered
from torchdiag.suite.page import Column, Page, left, table

_MOST_ALONE = 15
_HOW = (
    "An operator is a distinct name (aten::conv2d) of the ATen operators in the steps of the light recordings, those "
    "that are called by others included, overloads counted once.",
    "A function is a distinct public name (torch.nn.functional.conv2d, torch.Tensor.add_) of those that "
    "torch.overrides can override, as one step in Python calls it; what such a function calls itself, properties, and "
    "what runs in C++ alone (autograd) do not count.",
    "Compiled runs are left out: their operators are fused away.",
)


def page(coverage: Coverage) -> Page:
    """The page."""
    rows = [_row("all", coverage.all)]
    rows += [_row(domain or "unknown", covered) for domain, covered in coverage.domains.items()]
    rows.append(_row("MLPerf-like", coverage.mlperf))
    columns = [left("what"), Column("runs"), Column("operators"), Column("functions")]
    tables = [table("Distinct names exercised", columns, rows)]
    alone = sorted(
        (
            (model, len(covered.operators), len(covered.functions))
            for model, covered in coverage.alone.items()
            if covered.operators or covered.functions
        ),
        key=lambda item: (-item[1] - item[2], item[0]),
    )
    if len(coverage.alone) > 1 and alone:
        cells = [(model, str(operators), str(functions)) for model, operators, functions in alone[:_MOST_ALONE]]
        tables.append(
            table("Exercised by one model alone", [left("model"), Column("operators"), Column("functions")], cells)
        )
    return Page(_answer(coverage), (), tuple(tables), (*_notes(coverage), *_HOW))


def document(coverage: Coverage) -> dict[str, Any]:
    """The same for programs, with all names."""
    return {
        "schema": 1,
        "all": _names(coverage.all),
        "domains": {domain: _names(covered) for domain, covered in coverage.domains.items()},
        "mlperf_like": {"models": MLPERF_LIKE, "absent": list(coverage.absent), **_names(coverage.mlperf)},
        "operator_ratio": coverage.operator_ratio,
        "function_ratio": coverage.function_ratio,
        "paper_ratio": PAPER_RATIO,
        "alone": {model: _names(covered) for model, covered in coverage.alone.items()},
    }


def _answer(coverage: Coverage) -> str:
    operators, functions = len(coverage.all.operators), len(coverage.all.functions)
    start = f"{operators} ATen operators and {functions} public functions of torch"
    if coverage.operator_ratio is None:
        trained = len(MLPERF_LIKE) - len(coverage.absent)
        return f"{start}; {trained} of the {len(MLPERF_LIKE)} MLPerf-like models were trained, so there is no ratio"
    ratios = f"{coverage.operator_ratio:.1f}"
    if coverage.function_ratio is not None:
        ratios += f" and {coverage.function_ratio:.1f}"
    return f"{start}: {ratios} times those of the MLPerf-like models"


def _notes(coverage: Coverage) -> list[str]:
    notes = [
        "MLPerf-like are the models nearest to MLPerf Training 2.1, in training: "
        + ", ".join(f"{name} ({like})" for name, like in MLPERF_LIKE.items())
        + f". The TorchBench paper claims {PAPER_RATIO} times the API surface of MLPerf."
    ]
    if coverage.absent and coverage.mlperf.runs:
        notes.append(f"Not trained in this run: {', '.join(coverage.absent)}.")
    return notes


def _row(name: str, covered: Covered) -> tuple[str, ...]:
    return name, str(covered.runs), str(len(covered.operators)), str(len(covered.functions))


def _names(covered: Covered) -> dict[str, Any]:
    return {
        "runs": covered.runs,
        "operators": sorted(covered.operators),
        "functions": sorted(covered.functions),
    }

"""The report of a suite for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from torchdiag.suite import findings, pairs, shares
from torchdiag.suite.folder import SuiteFolder
from torchdiag.suite.outcome import Outcome
from torchdiag.suite.pairs import Pair
from torchdiag.suite.rows import row
from torchdiag.suite.shares import Measured

SCHEMA = 1


def dumps(folder: SuiteFolder, outcomes: Sequence[Outcome]) -> str:
    """One document, as ASCII text: no character of a run's reaches the reader raw."""
    return json.dumps(to_dict(folder, outcomes), indent=2, allow_nan=False)


def to_dict(folder: SuiteFolder, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Plain dictionaries, lists, numbers and texts. Shares are 0..1."""
    models = shares.measured(outcomes)
    return {
        "schema": SCHEMA,
        "suite": folder.plan.suite,
        "created": folder.plan.created,
        "planned": len(folder.plan.cases),
        "runs": [row(outcome) for outcome in outcomes],
        "domains": [asdict(one) for one in shares.domains(models)],
        "models": [_model(one) for one in models],
        "findings": [asdict(one) for one in findings.top(outcomes)],
        "train_and_eval": [_pair(pair) for pair in pairs.train_and_eval(models)],
        "eager_and_compiled": {
            mode: [_pair(pair) for pair in those] for mode, those in pairs.eager_and_compiled(models).items()
        },
        "devices": [
            {"first": first, "second": second, "pairs": [_pair(pair) for pair in those]}
            for (first, second), those in pairs.devices(models).items()
        ],
    }


def _model(one: Measured) -> dict[str, Any]:
    return {
        "group": one.case.group,
        "subject": one.case.subject,
        "domain": one.case.domain,
        "mode": one.case.mode,
        "kind": one.kind,
        "parts": one.parts,
        "busy": one.busy,
        "environment": one.environment,
        "step_ns": one.step_ns,
        "samples_per_s": one.samples_per_s,
        "peak_bytes": one.peak_bytes,
        "processes": one.processes,
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {"first": pair.first.case.group, "second": pair.second.case.group, "ratio": pair.ratio}

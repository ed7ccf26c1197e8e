"""The diagnosis as one JSON document, schema 1. Names are stable: additions are allowed, a rename is a new schema."""

from dataclasses import asdict
from typing import Any

from torchdiag.findings.finding import Diagnosis, Finding, Summary

SCHEMA = 1


def to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """Plain dictionaries, lists, numbers and texts; times are nanoseconds a step, shares 0..1."""
    return {
        "schema": SCHEMA,
        "trace": {"path": diagnosis.path, "torch": diagnosis.torch, "device": diagnosis.device},
        "summary": _summary(diagnosis.summary),
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "unchecked": [{"rule": item.rule, "needs": list(item.needs)} for item in diagnosis.unchecked],
        "quality": [note.to_dict() for note in diagnosis.quality],
    }


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "bound_by": summary.bound_by,
        "step_ns": round(summary.step_ns),
        "gpu_busy": summary.gpu_busy,
        "kernels_per_step": summary.kernels_per_step,
        "syncs_per_step": summary.syncs_per_step,
        "ceiling_step_ns": None if summary.ceiling_step_ns is None else round(summary.ceiling_step_ns),
        "steps": summary.steps,
        "sentence": summary.sentence,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    gain = finding.gain
    return {
        "rule": finding.rule,
        "family": finding.family,
        "verdict": finding.verdict,
        "severity": finding.severity,
        "title": finding.title,
        "where": asdict(finding.where),
        "count_per_step": finding.count_per_step,
        "events": list(finding.events),
        "accused_ns_per_step": round(finding.accused_ns),
        "idle_ns_per_step": round(finding.idle_ns),
        "gain_ns_per_step": None
        if gain is None
        else {"low": round(gain.low_ns), "expected": round(gain.expected_ns), "high": round(gain.high_ns)},
        "gain_share": finding.gain_share,
        "group_gain_ns_per_step": None if finding.group_gain_ns is None else round(finding.group_gain_ns),
        "confidence": finding.confidence,
        "reason": finding.reason,
        "fix": finding.fix,
    }

"""The recommendation models of the catalogue."""

from torchdiag.models.entry import Entry

ENTRIES = (
    Entry(
        "dlrm",
        "recommendation",
        "recommendation",
        "recommendation.dlrm:build",
        {"train": 2048, "eval": 2048},
        tiny_batch=64,
        a100_eval_batch=1,
    ),
)

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
    Entry(
        "nvidia_deeprecommender",
        "recommendation",
        "recommendation",
        "recommendation.deep_recommender:build",
        {"train": 256, "eval": 256},
        tiny_batch=8,
        a100_eval_batch=512,
    ),
)

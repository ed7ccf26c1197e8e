"""The models of no other domain in the catalogue."""

from torchdiag.models.entry import Entry

ENTRIES = (
    Entry("demucs", "other", "source separation", "other.demucs:build", {"train": 64, "eval": 8}, a100_eval_batch=32),
)

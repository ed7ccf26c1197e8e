"""The reinforcement learning models of the catalogue."""

from torchdiag.models.entry import Entry

ENTRIES = (
    Entry(
        "soft_actor_critic",
        "reinforcement learning",
        "control",
        "reinforcement.soft_actor_critic:build",
        {"train": 256, "eval": 256},
        tiny_batch=32,
        fixed_batch=True,
    ),
)

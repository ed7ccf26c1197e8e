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
    Entry(
        "drq",
        "reinforcement learning",
        "control",
        "reinforcement.drq:build",
        {"train": 1, "eval": 1},
        tiny_batch=1,
        fixed_batch=True,
    ),
    Entry(
        "LearningToPaint",
        "reinforcement learning",
        "painting",
        "reinforcement.learning_to_paint:build",
        {"train": 96, "eval": 96},
        a100_eval_batch=256,
    ),
)

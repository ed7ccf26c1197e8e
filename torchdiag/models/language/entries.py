"""The language models of the catalogue."""

from torchdiag.models.entry import Entry

_HUB = ("torch", "transformers")

ENTRIES = (
    Entry(
        "hf_Bert",
        "language",
        "language modeling",
        "language.hub:bert",
        {"train": 4, "eval": 1},
        requires=_HUB,
        a100_eval_batch=8,
    ),
    Entry(
        "hf_GPT2",
        "language",
        "language modeling",
        "language.hub:gpt2",
        {"train": 4, "eval": 1},
        requires=_HUB,
        a100_eval_batch=16,
    ),
    Entry(
        "hf_T5",
        "language",
        "language modeling",
        "language.hub:t5",
        {"train": 8, "eval": 1},
        requires=_HUB,
        a100_eval_batch=4,
    ),
)

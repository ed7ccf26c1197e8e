"""The language models of the catalogue."""

from torchdiag.models.entry import Entry
from torchdiag.models.workload import Mode


def _library(name: str, builder: str, train: int, evaluation: int, a100: int | None = None, **other: str) -> Entry:
    batch: dict[Mode, int] = {"train": train, "eval": evaluation}
    task = other.get("task", "language modeling")
    return Entry(
        name, "language", task, f"language.{builder}", batch, requires=("torch", "transformers"), a100_eval_batch=a100
    )


def _later(name: str, builder: str, batch: dict[Mode, int], *requires: str) -> Entry:
    return Entry(
        name, "language", "language modeling", f"language.{builder}", batch, requires=("torch", *requires), later=True
    )


ENTRIES = (
    Entry(
        "BERT_pytorch",
        "language",
        "language modeling",
        "language.bert:build",
        {"train": 16, "eval": 16},
        a100_eval_batch=32,
    ),
    Entry(
        "attention_is_all_you_need_pytorch",
        "language",
        "translation",
        "language.translation:build",
        {"train": 256, "eval": 32},
        a100_eval_batch=256,
    ),
    _library("fambench_xlmr", "encoders:xlmr", 96, 96, 64),
    _library("fastNLP_Bert", "encoders:bert_reading", 6, 1, 16, task="question answering"),
    _library("hf_Albert", "encoders:albert", 8, 1, 16),
    _library("hf_Bart", "encoder_decoders:bart", 4, 1, 8),
    _library("hf_Bert", "encoders:bert", 4, 1, 8),
    _library("hf_Bert_large", "encoders:bert_large", 4, 1, 4),
    _library("hf_BigBird", "encoders:bigbird", 2, 1, 4),
    _library("hf_DistilBert", "encoders:distilbert", 8, 1, 16),
    _library("hf_GPT2", "decoders:gpt2", 4, 1, 16),
    _library("hf_GPT2_large", "decoders:gpt2_large", 4, 1),
    _library("hf_Longformer", "encoders:longformer", 2, 1, 4),
    _library("hf_Reformer", "encoders:reformer", 8, 1, 8),
    _library("hf_T5", "encoder_decoders:t5", 8, 1, 4),
    _library("hf_T5_base", "encoder_decoders:t5_base", 8, 1),
    _library("hf_T5_large", "encoder_decoders:t5_large", 2, 1),
    _later("hf_T5_generate", "encoder_decoders:t5_generate", {"eval": 1}, "transformers"),
    _later("hf_Mixtral_small", "decoders:mixtral", {"train": 4, "eval": 1}, "transformers"),
    _later("llama", "decoders:llama", {"train": 4, "eval": 1}, "transformers"),
    _later("nanogpt", "nanogpt:build", {"train": 1, "eval": 1}),
)

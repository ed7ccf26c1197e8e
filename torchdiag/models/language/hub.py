"""Language models of transformers, built from their configurations on random tokens."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from typing import Any, cast

import torch
import transformers

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload


def _language_model(setting: Setting, model_class: str, config: object, length: int, vocabulary: int) -> Workload:
    library = cast(Any, transformers)
    model = getattr(library, model_class)(config).to(setting.device, setting.dtype)
    tokens = torch.randint(vocabulary, (setting.batch_size, length), device=setting.device)
    inputs = {"input_ids": tokens, "labels": tokens}
    if not setting.training:
        model.eval()
        return Workload(inference_step(setting, lambda: model(**inputs).logits), setting.batch_size, (model,))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return Workload(training_step(setting, optimizer, lambda: model(**inputs).loss), setting.batch_size, (model,))


def bert(setting: Setting) -> Workload:
    """BERT base with a masked-language-model head (arXiv 1810.04805), 512 tokens."""
    library = cast(Any, transformers)
    if setting.tiny:
        config = library.BertConfig(
            vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256
        )
        return _language_model(setting, "BertForMaskedLM", config, 32, 1000)
    return _language_model(setting, "BertForMaskedLM", library.BertConfig(), 512, 30522)


def gpt2(setting: Setting) -> Workload:
    """GPT-2 small, 512 tokens in training, 1024 in evaluation."""
    library = cast(Any, transformers)
    if setting.tiny:
        config = library.GPT2Config(
            vocab_size=1000, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
        )
        return _language_model(setting, "GPT2LMHeadModel", config, 32, 1000)
    length = 512 if setting.training else 1024
    return _language_model(setting, "GPT2LMHeadModel", library.GPT2Config(), length, 50257)


def t5(setting: Setting) -> Workload:
    """T5 small (arXiv 1910.10683), 1024 tokens in training, 2048 in evaluation."""
    library = cast(Any, transformers)
    start = {"decoder_start_token_id": 0}
    if setting.tiny:
        config = library.T5Config(
            vocab_size=1000, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_decoder_layers=2, num_heads=4, **start
        )
        return _language_model(setting, "T5ForConditionalGeneration", config, 32, 1000)
    length = 1024 if setting.training else 2048
    return _language_model(setting, "T5ForConditionalGeneration", library.T5Config(**start), length, 32128)

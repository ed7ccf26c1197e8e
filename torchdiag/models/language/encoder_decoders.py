"""Models of transformers that read a text and write another: T5 and BART."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportPrivateImportUsage=false
# torch and transformers leave parts of their own signatures untyped.

from typing import Any

from torchdiag.models.language.library import TINY_VOCABULARY, language_model, library, network, random_tokens
from torchdiag.models.stepping import inference_step
from torchdiag.models.workload import Setting, Workload

NEW_TOKENS = 64


def _t5_config(setting: Setting, width: int, hidden: int, layers: int, heads: int) -> Any:
    if setting.tiny:
        return library.T5Config(
            vocab_size=TINY_VOCABULARY,
            d_model=64,
            d_kv=16,
            d_ff=128,
            num_layers=layers // 6 + 1,
            num_heads=4,
            decoder_start_token_id=0,
        )
    return library.T5Config(d_model=width, d_ff=hidden, num_layers=layers, num_heads=heads, decoder_start_token_id=0)


def _t5(setting: Setting, config: Any, length: int) -> Workload:
    return language_model(setting, "T5ForConditionalGeneration", config, 32 if setting.tiny else length)


def t5(setting: Setting) -> Workload:
    """T5 small (arXiv 1910.10683), 1024 tokens in training, 2048 in evaluation."""
    return _t5(setting, _t5_config(setting, 512, 2048, 6, 8), 1024 if setting.training else 2048)


def t5_base(setting: Setting) -> Workload:
    """T5 base (arXiv 1910.10683), 1024 tokens in training, 2048 in evaluation."""
    return _t5(setting, _t5_config(setting, 768, 3072, 12, 12), 1024 if setting.training else 2048)


def t5_large(setting: Setting) -> Workload:
    """T5 large (arXiv 1910.10683), 512 tokens."""
    return _t5(setting, _t5_config(setting, 1024, 4096, 24, 16), 512)


def t5_generate(setting: Setting) -> Workload:
    """T5 small that reads 512 tokens and writes exactly 64, greedily; tiny: reads 32 and writes 8."""
    config = _t5_config(setting, 512, 2048, 6, 8)
    length, new = (32, 8) if setting.tiny else (512, NEW_TOKENS)
    model: Any = network(setting, "T5ForConditionalGeneration", config)
    tokens = random_tokens(setting, config.vocab_size, length)
    # As many tokens at least as at most, so that random weights do not decide how long a step takes.
    options = {"max_new_tokens": new, "min_new_tokens": new, "do_sample": False}
    step = inference_step(setting, lambda: model.generate(input_ids=tokens, **options))
    return Workload(step, setting.batch_size, (model,))


def bart(setting: Setting) -> Workload:
    """BART base (arXiv 1910.13461), 512 tokens."""
    width, hidden, layers, heads = (64, 256, 2, 4) if setting.tiny else (768, 3072, 6, 12)
    config = library.BartConfig(
        vocab_size=TINY_VOCABULARY if setting.tiny else 50265,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=hidden,
        decoder_ffn_dim=hidden,
    )
    return language_model(setting, "BartForConditionalGeneration", config, 32 if setting.tiny else 512)

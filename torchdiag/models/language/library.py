"""What the models of transformers have in common: built from a configuration, run on random tokens."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from collections.abc import Callable
from typing import Any, cast

import torch
import transformers
from torch import Tensor, nn

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload

library = cast(Any, transformers)
"""The library, whose classes are made at run time and have no types to check against."""

StepMaker = Callable[[Setting, Callable[[], object]], Callable[[], object]]

TINY_VOCABULARY = 1000


def network(setting: Setting, model_class: str, config: object) -> nn.Module:
    """A model with random weights on its device, in the mode that is asked for."""
    model = getattr(library, model_class)(config).to(setting.device, setting.dtype)
    return model.train(setting.training)


def random_tokens(setting: Setting, vocabulary: int, length: int) -> Tensor:
    """Tokens [N, L], int64, on the device."""
    return torch.randint(vocabulary, (setting.batch_size, length), device=setting.device)


def language_model(
    setting: Setting, model_class: str, config: Any, length: int, step_of: StepMaker = inference_step
) -> Workload:
    """Training predicts the input itself; evaluation computes the logits of every token."""
    model = network(setting, model_class, config)
    tokens = random_tokens(setting, config.vocab_size, length)
    inputs = {"input_ids": tokens}
    if config.is_encoder_decoder and not setting.training:
        inputs["decoder_input_ids"] = tokens
    return workload(
        setting,
        model,
        loss=lambda: model(input_ids=tokens, labels=tokens).loss,
        forward=lambda: model(**inputs).logits,
        step_of=step_of,
    )


def workload(
    setting: Setting,
    model: nn.Module,
    loss: Callable[[], Tensor],
    forward: Callable[[], object],
    step_of: StepMaker = inference_step,
) -> Workload:
    """A training step on the loss with AdamW, or a step of the forward pass made by `step_of`, as the setting asks."""
    if not setting.training:
        return Workload(step_of(setting, forward), setting.batch_size, (model,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))

"""What is asked of `torchdiag profile` and cannot be meant."""

from collections.abc import Mapping
from typing import Final, Literal

from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import ProfileOptions, TargetKind

_MODELS_ONLY: Final = ("--mode", "--batch-size", "--compile", "--channels-last", "--size")
_PROGRAMS_ONLY: Final = ("--skip", "--seconds", "--finish")
_OF_ITS_OWN: Final = ("--device", "--dtype", "--seed", "--warmup")
_WITHOUT_EFFECT: Final[dict[TargetKind, tuple[str, ...]]] = {
    "model": _PROGRAMS_ONLY,
    "function": (*_MODELS_ONLY, *_PROGRAMS_ONLY),
    "script": (*_MODELS_ONLY, *_OF_ITS_OWN),
    "module": (*_MODELS_ONLY, *_OF_ITS_OWN),
}


def refuse_what_has_no_effect(options: ProfileOptions, given: Mapping[str, bool]) -> None:
    """Raise TorchdiagError for an option that would change nothing for this kind of target."""
    useless = [option for option in _WITHOUT_EFFECT[options.target_kind] if given.get(option)]
    if options.target_kind == "function" and options.dtype not in ("fp32", "tf32"):
        useless.append(f"--dtype {options.dtype}")
    if not useless:
        return
    kind = options.target_kind
    instead = "" if kind == "model" else f": the {kind} decides that itself"
    if useless == ["--warmup"]:
        instead = "; --skip leaves out steps of one"
    elif useless == ["--skip"]:
        instead = f"; --warmup is what a {kind} has"
    raise TorchdiagError(
        f"{' and '.join(useless)} {'has' if len(useless) == 1 else 'have'} no effect on a {kind}{instead}"
    )


def batch_size(text: str | None) -> int | Literal["tune"] | None:
    """The number, or tune, that a text is. Raises TorchdiagError for anything else."""
    if text is None:
        return None
    if text == "tune":
        return "tune"
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise TorchdiagError(f"--batch-size {text}: give a number from 1 up, or tune")
    return int(text)

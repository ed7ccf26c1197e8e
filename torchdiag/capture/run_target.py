"""Runs a target in this process and takes it through the passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchdiag.capture import device as devices
from torchdiag.capture import model_target, targets
from torchdiag.capture.exceptions_pass import Exceptions
from torchdiag.capture.functions_pass import Functions
from torchdiag.capture.hand_over import HandOver
from torchdiag.capture.passes import Pass, Passes, Timed, WarmUp
from torchdiag.capture.profiled_pass import Profiled
from torchdiag.capture.steps import StepFinder
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import Failure, StepSource


class FinishedError(BaseException):
    """Ends a program at a step border once everything is measured; no Exception, so that programs let it through."""


class BrokenError(BaseException):
    """Carries an error of this tool's own out of a program, past the program's handlers."""


def run(options: ProfileOptions, hand_over: HandOver, *, only_timed: bool = False) -> None:
    """Run the target through its passes. What the target raises goes through, after what was measured is handed over.

    Raises TorchdiagError for what the user can mend before anything runs.
    """
    match options.target_kind:
        case "model":
            built = model_target.build(options)
            hand_over.describe(
                batch_size=built.workload.batch_size,
                size=built.size,
                parameters=built.parameters,
                model_note=built.workload.note,
                steps_found_by="model",
            )
            passes = Passes(passes_of(options, only_timed=only_timed), hand_over, lambda: built.device)
            _repeat(built.workload.step, passes, hand_over)
        case "function":
            function = targets.function(options.target)
            _seed(options)
            device = devices.choose(options.device) if options.device != "auto" else None
            hand_over.describe(steps_found_by="function")
            passes = Passes(passes_of(options), hand_over, lambda: device or devices.in_use())
            _repeat(function, passes, hand_over)
        case "script" | "module":
            _Program(options, hand_over).run()
            return
    _guard(hand_over.complete)


def passes_of(options: ProfileOptions, *, only_timed: bool = False, windows: bool = False) -> Sequence[Pass]:
    """The passes in order. `windows`: the steps are stretches of time, of which one is enough and none is timed."""
    warmup = options.warmup if options.target_kind in ("model", "function") else options.skip
    passes: list[Pass]
    if windows:
        passes = [WarmUp(warmup or 1), *(Profiled(options, detailed=detailed, steps=1) for detailed in (False, True))]
        return [*passes, Exceptions(1)] if options.exceptions else passes
    passes = [] if warmup == 0 else [WarmUp(warmup)]
    passes.append(Timed(options.steps))
    if only_timed:
        return passes
    passes += [Profiled(options, detailed=False), Profiled(options, detailed=True)]
    passes += [Exceptions()] if options.exceptions else []
    # Compiled code is not to be compiled anew for it.
    return [*passes, Functions()] if options.functions and options.compile is None else passes


def _seed(options: ProfileOptions) -> None:
    import torch  # noqa: PLC0415 - so that the command line starts without torch

    torch.manual_seed(options.seed)  # pyright: ignore[reportUnknownMemberType]
    model_target.set_precision(options.dtype)


def _guard(call: Callable[[], None]) -> None:
    """An error in here is none of the target's: it must not be caught or explained by it."""
    try:
        call()
    except Exception as error:
        raise BrokenError from error


def _abandon(passes: Passes, hand_over: HandOver) -> None:
    """Save what the pass in progress has, while something worse goes on, which this must not hide."""
    try:
        passes.abandon()
    except Exception as error:
        hand_over.tell({"lost": f"{type(error).__name__}: {error}"})


def _repeat(step: Callable[[], object], passes: Passes, hand_over: HandOver) -> None:
    try:
        _guard(passes.begin)
        while not passes.done:
            step()
            _guard(passes.border)
    except BrokenError:
        raise
    except BaseException:
        _abandon(passes, hand_over)
        raise


class _Program:
    """A script or module: it runs by itself, and its step borders come through hooks."""

    def __init__(self, options: ProfileOptions, hand_over: HandOver) -> None:
        self._options = options
        self._hand_over = hand_over
        self._passes = self._plan("optimizer")
        self._finder = StepFinder(
            self._border, locked=lambda: not self._passes.warming_up, on_source=self._found, seconds=options.seconds
        )
        self._ended = False

    def run(self) -> None:
        """Run it to its end, or to the border after the last pass."""
        run = targets.program(self._options)
        self._finder.install()
        try:
            run()
        except FinishedError:
            return
        except BaseException:
            self._over()
            raise
        if not self._ended:
            self._over()
            self._hand_over.fail(self._too_short())

    def _plan(self, source: StepSource) -> Passes:
        return Passes(passes_of(self._options, windows=source == "time"), self._hand_over, devices.in_use)

    def _found(self, source: StepSource) -> None:
        def begin() -> None:
            self._passes = self._plan(source)
            self._hand_over.describe(steps_found_by=source)
            self._passes.begin()

        self._guard(begin)

    def _border(self) -> None:
        if self._ended:
            # The program has caught what was to end it, once; it is told again, until it lets it through.
            raise FinishedError
        self._guard(self._passes.border)
        if not self._passes.done:
            return
        self._guard(self._hand_over.complete)
        self._ended = True
        if self._options.finish:
            self._finder.remove()
            return
        raise FinishedError

    def _guard(self, call: Callable[[], None]) -> None:
        try:
            _guard(call)
        except BrokenError:
            self._ended = True
            raise

    def _over(self) -> None:
        """The program is over before the passes are."""
        self._finder.remove()
        if not self._ended:
            self._ended = True
            _abandon(self._passes, self._hand_over)

    def _too_short(self) -> Failure:
        borders = self._passes.borders
        target = self._options.target
        if self._finder.source is None or not borders:
            return Failure(
                kind="no-steps",
                message=f"{target} ended without a step being found in it: no optimizer stepped and no DataLoader was "
                "iterated. Call `torchdiag.step()` at the end of each step, or measure stretches of time with "
                "`--seconds 1`.",
            )
        return Failure(
            kind="few-steps",
            message=f"{target} ended after {borders} step{'' if borders == 1 else 's'} (found by "
            f"{self._finder.source}), too few for all passes: let it run longer, or ask for fewer with "
            "`--skip 1 --steps 5`.",
        )

"""The command line: which commands there are, and what becomes of an error.

A command is one module of this package with a function `run`, whose parameters carry typer annotations and whose
docstring is its help. Such a module imports nothing but typer and the standard library at its top; everything that
needs numpy or the rest of torchdiag is imported inside `run`, so that `torchdiag --help` answers at once.
"""

import os
import sys
from typing import Annotated

import typer

from torchdiag.cli import breakdown, diagnose, doctor, open_trace, profile, repair, rules, suite, what_if
from torchdiag.errors import TorchdiagError

# No rich markup anywhere: a trace called `[bold].json` is to be named as it is.
app = typer.Typer(
    name="torchdiag",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib import metadata  # noqa: PLC0415 - a fifth of the time `--help` takes

    try:
        print(f"torchdiag {metadata.version('torchdiag')}")
    except metadata.PackageNotFoundError:
        print("torchdiag (a checkout that is not installed)")
    raise typer.Exit


@app.callback()
def _torchdiag(  # pyright: ignore[reportUnusedFunction] - typer calls it
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Say why a PyTorch model is slow, to the nanosecond and the source line, from a profiler trace."""


app.command("profile", cls=profile.ProfileCommand, short_help="Run a model or a script and say where its time goes.")(
    profile.run
)
app.command("breakdown", short_help="Say where every nanosecond of GPU time went.")(breakdown.run)
app.command("diagnose", short_help="Name the bugs, show the proof, compute the gain.")(diagnose.run)
app.command("what-if", short_help="Say how long a step would take without something.")(what_if.run)
app.command("rules", short_help="List the bugs that can be found, or explain one.")(rules.run)
app.add_typer(suite.app, name="suite", short_help="Run many models, one by one, and compare what came of it.")
app.command("open", short_help="Show a trace in the Perfetto UI.")(open_trace.run)
app.command("doctor", short_help="Check what of this works on this machine.")(doctor.run)
app.command("repair", short_help="Write valid JSON out of a damaged trace.")(repair.run)


def main() -> None:
    """Run the command line and exit.

    Codes: 0; 1 for a bug, with its traceback; 2 for a mistake of the user's, with one message; 130 when interrupted.
    """
    try:
        _run()
    except TorchdiagError as error:
        print(f"torchdiag: {_harmless(str(error))}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`torchdiag ... | head`). Python flushes standard output once more while
        # it exits: give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _run() -> None:
    """Run the command line and exit; after success without taking everything apart first.

    That takes a tenth of the time of a small trace, and nothing here needs it but torch and what it has started.
    """
    try:
        app()
    except SystemExit as leaving:
        if leaving.code or "torch" in sys.modules:
            raise
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(0)


def _harmless(text: str) -> str:
    """The text without what a terminal would obey: names of files and of events may hold anything."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


if __name__ == "__main__":
    main()

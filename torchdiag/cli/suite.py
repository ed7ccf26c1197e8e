"""`torchdiag suite`: many models at once. Its commands are one a file."""

import typer

from torchdiag.cli import suite_list, suite_run

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, add_completion=False)


@app.callback()
def _suite() -> None:  # pyright: ignore[reportUnusedFunction] - typer calls it
    """Run many models, one by one, and compare what came of it."""


app.command("list", short_help="List the suites and the models.")(suite_list.run)
app.command("run", short_help="Run a suite: one that comes with torchdiag, or a file of yours.")(suite_run.run)

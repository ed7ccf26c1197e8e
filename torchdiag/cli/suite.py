"""`torchdiag suite`: many models at once. Its commands are one a file."""

import typer

from torchdiag.cli import suite_compare, suite_coverage, suite_list, suite_report, suite_run, suite_tune

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, add_completion=False)


@app.callback()
def _suite() -> None:  # pyright: ignore[reportUnusedFunction] - typer calls it
    """Run many models, one by one, and compare what came of it."""


app.command("list", short_help="List the suites and the models.")(suite_list.run)
app.command("run", short_help="Run a suite: one that comes with torchdiag, or a file of yours.")(suite_run.run)
app.command("report", short_help="Show where the time of a suite's models went.")(suite_report.run)
app.command("compare", short_help="Say what became slower or faster between two runs of a suite.")(suite_compare.run)
app.command("coverage", short_help="Count the operators and functions that a suite exercised.")(suite_coverage.run)
app.command("tune", short_help="Find the batch sizes at which a suite's models stop getting faster.")(suite_tune.run)

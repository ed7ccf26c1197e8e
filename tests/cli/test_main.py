"""The command line as a user meets it: fast help, and one sentence for a mistake."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TORCHDIAG = [sys.executable, "-m", "torchdiag"]
COMMANDS = ("profile", "breakdown", "suite", "doctor", "open", "repair")


def run(*arguments: str, **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*TORCHDIAG, *arguments], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["breakdown", "--help"], ["open", "--help"], ["repair", "--help"], ["suite", "run", "--help"]],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from torchdiag.cli.main import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'numpy', 'pandas', 'msgspec', 'torch', 'rich', 'isal'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr == "set()\n"
    assert "Usage:" in done.stdout


def test_help_names_every_command() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    assert all(f"  {command} " in shown.stdout for command in COMMANDS)


def test_version() -> None:
    shown = run("--version")
    assert shown.returncode == 0
    assert shown.stdout.startswith("torchdiag ")


@pytest.mark.parametrize(
    "arguments",
    [["breakdown", "{}"], ["repair", "{}", "-o", "-"], ["open", "{}", "--no-browser"]],
    ids=lambda arguments: arguments[0],
)
def test_a_file_that_is_not_there_is_one_sentence_and_code_2(tmp_path: Path, arguments: list[str]) -> None:
    # Neither markup nor terminal escapes in a name do anything.
    path = str(tmp_path / "[bold red]none[/].json\x1b[31m")
    done = run(*(argument.format(path) for argument in arguments))
    if "port 9001" in done.stderr:
        pytest.skip("port 9001 is taken on this machine")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("torchdiag: ")
    assert "[bold red]none[/].json" in done.stderr
    assert "\x1b" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["nonsense"], ["breakdown"], ["repair", "x"], ["breakdown", "--nonsense", "x"]])
def test_a_wrong_command_line_is_code_2_without_traceback(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_bug_crashes_loudly() -> None:
    script = (
        "from torchdiag.cli import main, breakdown\n"
        "import typer\n"
        "def run() -> None: raise ZeroDivisionError\n"
        "main.app = typer.Typer(pretty_exceptions_enable=False); main.app.command()(run)\n"
        "import sys; sys.argv = ['torchdiag']; main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def opened_for_writing(pipe: Path, reader: "subprocess.Popen[str]") -> int:
    """A descriptor of the pipe, once the other process reads it."""
    while reader.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
    return pytest.fail("the command ended before it read its input")


def test_an_interrupt_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = subprocess.Popen([*TORCHDIAG, "repair", str(pipe), "-o", "-"], stderr=subprocess.PIPE, text=True)
    writer = opened_for_writing(pipe, reading)
    reading.send_signal(signal.SIGINT)
    _, said = reading.communicate(timeout=20)
    os.close(writer)
    assert reading.returncode == 130
    assert "Traceback" not in said


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    event = '{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}'
    path.write_text('{"traceEvents": [' + ",".join([event] * 100_000) + "]}")
    command = f"{sys.executable} -m torchdiag repair {path} -o - | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert len(done.stdout) == 10
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr

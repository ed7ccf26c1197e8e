"""The house rules that a machine can check: lint, format, types, and the direction of imports."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["lint-imports"],
        ["pyright", "--pythonpath", sys.executable],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_the_house_is_in_order(command: list[str]) -> None:
    if not (BIN / command[0]).exists():
        pytest.skip(f"{command[0]} is not installed; pip install '.[test]'")
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_holds_one_idea() -> None:
    sources = [
        *(ROOT / "torchdiag").rglob("*.py"),
        *(ROOT / "native").rglob("*.[ch]pp"),
        *(ROOT / "native").rglob("*.h"),
    ]
    long = {
        str(path.relative_to(ROOT)): lines for path in sources if (lines := len(path.read_text().splitlines())) > 420
    }
    assert not long


def test_nothing_of_the_analysis_names_torch_at_import_time() -> None:
    code = "import sys, torchdiag.api, torchdiag.cli.main; print([m for m in ('torch', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

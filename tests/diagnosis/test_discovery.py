"""Every rule is found by itself, documents itself, and is known by the catalogue's name."""

import re
import sys
from pathlib import Path

import pytest

from torchdiag.diagnosis.discovery import chosen, documentation, rules
from torchdiag.errors import TorchdiagError
from torchdiag.findings.rule import Rule

ROOT = Path(__file__).parents[2]
HEADINGS = [
    "What it finds",
    "Why it is slow",
    "How it is detected",
    "When it does not matter",
    "How to fix it",
    "References",
]
LEAST_OF_THE_CATALOGUE = 60

each_rule = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)


def test_at_least_sixty_rules_of_the_catalogue_are_there() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "rules"))
    from real_verdicts import CATALOGUE  # noqa: PLC0415 - lies in the folder that was just added

    assert len({rule.id for rule in rules()} & CATALOGUE) >= LEAST_OF_THE_CATALOGUE


def test_ids_are_distinct() -> None:
    assert len({rule.id for rule in rules()}) == len(rules())


@each_rule
def test_a_rule_documents_itself_under_the_fixed_headings(rule: Rule) -> None:
    text = documentation(rule)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    summary, _, rest = text.partition("\n")
    assert summary.endswith(".")
    assert rest.startswith("\n## ")
    sections = re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]
    assert all(section.strip() for section in sections)


@each_rule
def test_the_fix_shows_a_before_and_an_after_that_are_python(rule: Rule) -> None:
    fix = documentation(rule).partition("## How to fix it")[2].partition("## References")[0]
    before, separator, after = fix.partition("After:")
    assert separator
    assert "Before:" in before
    for part in (before, after):
        blocks = re.findall(r"```(\w+)\n(.*?)```", part, re.DOTALL)
        assert blocks
        for language, code in blocks:
            if language == "python":
                compile(completed(code), rule.id, "exec")


def completed(code: str) -> str:
    """A snippet that may end in a decorator or in a block whose body is a comment."""
    lines = code.rstrip().splitlines()
    last = next(line for line in reversed(lines) if line.strip() and not line.strip().startswith("#"))
    indent = " " * (len(last) - len(last.lstrip()))
    if last.lstrip().startswith("@"):
        lines.append(f"{indent}def decorated(): ...")
    elif last.split("#")[0].rstrip().endswith(":"):
        lines.append(f"{indent}    ...")
    return "\n".join(lines) + "\n"


@each_rule
def test_the_reference_names_a_public_report_or_a_page(rule: Rule) -> None:
    references = documentation(rule).partition("## References")[2].strip().splitlines()
    assert references
    assert references[0].startswith("- ")


def test_docs_are_made_from_the_rules() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    from generate_rules import pages  # noqa: PLC0415 - lies in the folder that was just added

    written = {file.name: file.read_text("utf-8") for file in (ROOT / "docs" / "rules").glob("*.md")}
    stale = sorted(name for name, text in pages().items() if written.get(name) != text)
    gone = sorted(set(written) - set(pages()))
    assert not stale and not gone, f"run python docs/generate_rules.py: {stale + gone}"


def test_rules_are_chosen_by_id() -> None:
    some = [rule.id for rule in chosen(["sync-item-scalar", "h2d-pageable"], ["h2d-pageable"])]
    assert some == ["sync-item-scalar"]
    assert len(chosen([], ["sync-item-scalar"])) == len(rules()) - 1


@pytest.mark.parametrize("only,ignored", [(["sync-item-scalr"], []), ([], ["sync-item-scalr"])])
def test_a_misspelt_rule_is_told_with_the_one_that_was_meant(only: list[str], ignored: list[str]) -> None:
    with pytest.raises(TorchdiagError, match="did you mean sync-item-scalar"):
        chosen(only, ignored)

"""Write docs/rules/ from the documentation of the rules themselves: `python docs/generate_rules.py`."""

from pathlib import Path

from torchdiag.diagnosis.discovery import rules
from torchdiag.report.rules_page import index, page


def pages() -> dict[str, str]:
    """The text of every file of docs/rules/, by name."""
    return {"README.md": index(rules()), **{f"{rule.id}.md": page(rule) for rule in rules()}}


def main() -> None:
    """Write the files, and remove those of rules that are gone."""
    folder = Path(__file__).with_name("rules")
    folder.mkdir(exist_ok=True)
    wanted = pages()
    for name, text in wanted.items():
        (folder / name).write_text(text, "utf-8")
    for file in folder.glob("*.md"):
        if file.name not in wanted:
            file.unlink()


if __name__ == "__main__":
    main()

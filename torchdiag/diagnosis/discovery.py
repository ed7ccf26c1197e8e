"""Finds the rules: every module of `torchdiag.rules` is one."""

import pkgutil
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module

from torchdiag import rules as room
from torchdiag.errors import TorchdiagError
from torchdiag.findings.rule import Rule


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, by family and id."""
    names = [module.name for module in pkgutil.iter_modules(room.__path__)]
    found = [import_module(f"{room.__name__}.{name}").RULE for name in names]
    return tuple(sorted(found, key=lambda rule: (rule.family, rule.id)))


def documentation(rule: Rule) -> str:
    """What the rule's file says of it, in Markdown."""
    return (import_module(f"{room.__name__}.{rule.id.replace('-', '_')}").__doc__ or "").strip()


def chosen(only: Iterable[str], ignored: Iterable[str]) -> tuple[Rule, ...]:
    """The rules with the ids `only` (all where there are none) without the `ignored`.

    Raises TorchdiagError for an id that no rule has.
    """
    every = {rule.id: rule for rule in rules()}
    only, ignored = list(only), set(ignored)
    for name in (*only, *ignored):
        if name not in every:
            near = get_close_matches(name, every, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise TorchdiagError(f"there is no rule {name!r}{hint} `torchdiag rules` lists all of them")
    return tuple(rule for rule in every.values() if (not only or rule.id in only) and rule.id not in ignored)

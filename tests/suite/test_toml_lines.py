"""Every value of a TOML text is found on its line, however it is written."""

import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from torchdiag.suite.toml_lines import lines

TEXT = '''# a comment with [brackets] and "quotes"
title = "a # no comment, \\" and [no] {table}"
literal = 'back\\slash'   # here is one
"quoted key" = 1
a.b = 2
long = """
[not.a.header]
key = 1 \\
"""
odd = """two quotes at the end: """""
numbers = [1, 2,
  3,   # three
  4]
date = 2026-01-01T00:00:00Z

[section]
inline = { x = 1, y = [
  { z = 2 }, { z = "}" },
] }

[[run]]
model = "first"
[run.sub]
deep = true
[[run]]
model = "second"
batches = { train = 4, eval = [1,
  2] }
'''


def test_each_kind_of_value():
    found = lines(TEXT)
    wanted = {
        ("title",): 2,
        ("literal",): 3,
        ("quoted key",): 4,
        ("a", "b"): 5,
        ("long",): 6,
        ("odd",): 10,
        ("numbers",): 11,
        ("numbers", 1): 11,
        ("numbers", 2): 12,
        ("numbers", 3): 13,
        ("date",): 14,
        ("section",): 16,
        ("section", "inline", "x"): 17,
        ("section", "inline", "y", 0, "z"): 18,
        ("section", "inline", "y", 1, "z"): 18,
        ("run", 0): 21,
        ("run", 0, "model"): 22,
        ("run", 0, "sub", "deep"): 24,
        ("run", 1): 25,
        ("run", 1, "model"): 26,
        ("run", 1, "batches", "eval", 1): 28,
    }
    assert {key: found[key] for key in wanted} == wanted
    assert found.keys() >= paths(tomllib.loads(TEXT))


def paths(value, before=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {path for key, inner in items for path in ((*before, key), *paths(inner, (*before, key)))}


def inline(inner):
    return st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), inner, max_size=3)


texts = st.text(st.characters(codec="ascii", exclude_characters="\r"), max_size=12)
scalars = st.one_of(st.integers(), st.booleans(), texts)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | inline(inner), max_leaves=8)


def written(value):
    """Every element of a list on a line of its own."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        escapes = {"\\": "\\\\", '"': '\\"', "\x7f": "\\u007f"}
        escapes |= {chr(code): f"\\u{code:04x}" for code in range(32)}
        return '"' + "".join(escapes.get(character, character) for character in value) + '"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {written(item)}" for key, item in value.items()) + " }"
    return "[" + "".join(f"\n{written(item)}," for item in value) + "\n]"


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), values, max_size=4))
def test_whatever_tomllib_reads_is_found_where_it_stands(document):
    text = "".join(f"{key} = {written(value)}\n" for key, value in document.items())
    assert tomllib.loads(text) == document
    found = lines(text)
    assert found.keys() == paths(document)
    at = text.split("\n")
    for path, line in found.items():
        value = document
        for key in path:
            value = value[key]
        # A list's element begins its line; a key of a table is named on it.
        assert at[line - 1].startswith(written(value).split("\n")[0]) or f"{path[-1]} = " in at[line - 1]

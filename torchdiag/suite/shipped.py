"""The suites that come with torchdiag, and finding a suite by what a user calls it."""

import difflib
from pathlib import Path
from typing import Final

from torchdiag.errors import TorchdiagError
from torchdiag.suite import suite_file
from torchdiag.suite.suite_file import Suite

_PACKAGE: Final = Path(__file__).parents[1]
_FOLDERS: Final = (_PACKAGE / "suites", _PACKAGE.parent / "suites")
"""Where they are: in an installed package, in a checkout."""


def folder() -> Path:
    """The folder that holds them."""
    return next((place for place in _FOLDERS if place.is_dir()), _FOLDERS[0])


def names() -> list[str]:
    """What they are called."""
    return sorted(path.stem for path in folder().glob("*.toml"))


def find(suite: str) -> Suite:
    """The suite in a file, or the shipped one of that name.

    Raises:
        TorchdiagError: there is neither, or the file has mistakes.
    """
    if suite in names():
        return suite_file.read(folder() / f"{suite}.toml", any_model=True)
    path = Path(suite)
    if path.is_file() or path.suffix == ".toml":
        return suite_file.read(path, any_model=path.resolve().parent == folder().resolve())
    near = difflib.get_close_matches(suite, names(), n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise TorchdiagError(f"There is no suite {suite!r}.{hint} There are {', '.join(names())}; or name a .toml file.")


def all_shipped() -> list[Suite]:
    """Every one of them."""
    return [find(name) for name in names()]

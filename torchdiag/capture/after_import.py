"""Calls a function right after a module has been imported, by whoever imports it."""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def after_import(name: str, call: Callable[[], None]) -> None:
    """Call `call` once the top-level module `name` is there: now, or when a program imports it.

    Importing it early for the program's sake would be wrong: a program may set variables that the module reads, before
    it imports it.
    """
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Finder(name, call))


class _Finder(MetaPathFinder):
    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self._name = name
        self._call = call

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the others find, with a loader that tells."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec, spec.loader, self._call)
        return spec


class _Loader(Loader):
    def __init__(self, spec: ModuleSpec, loader: Loader, call: Callable[[], None]) -> None:
        self._spec = spec
        self._loader = loader
        self._call = call

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the module's own loader does; then the call."""
        # Its own again, before the module's code looks at it.
        self._spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._call()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

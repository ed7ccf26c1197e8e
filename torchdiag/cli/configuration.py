"""What `[tool.torchdiag]` of a project's pyproject.toml says about `torchdiag diagnose`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from torchdiag.errors import TorchdiagError

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The project's settings, None or empty where it has none."""

    ignore: tuple[str, ...] = ()
    min_gain: str | None = None
    fail_on: str | None = None


def read() -> Configuration:
    """The settings of the nearest pyproject.toml that has any, from the current folder upwards.

    Raises TorchdiagError for a file that is not TOML, an unknown setting or one of a wrong type.
    """
    import tomllib  # noqa: PLC0415 - only `diagnose` reads it
    from pathlib import Path  # noqa: PLC0415

    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / FILE
        if not file.is_file():
            continue
        try:
            document = tomllib.loads(file.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise TorchdiagError(f"{file} cannot be read: {error}") from error
        tool: object = document.get("tool", {})
        table = cast(dict[str, object], tool).get("torchdiag") if isinstance(tool, dict) else None
        if table is not None:
            return _checked(file, table)
    return Configuration()


def _checked(file: Path, table: object) -> Configuration:
    if not isinstance(table, dict):
        raise TorchdiagError(f"{file}: [tool.torchdiag] has to be a table")
    settings = cast(dict[str, object], table)
    unknown = sorted(set(settings) - {"ignore", "min-gain", "fail-on"})
    if unknown:
        raise TorchdiagError(
            f"{file}: [tool.torchdiag] has no setting {unknown[0]!r}; there are ignore, min-gain and fail-on"
        )
    ignore = settings.get("ignore", [])
    if not isinstance(ignore, list) or not all(isinstance(item, str) for item in cast(list[object], ignore)):
        raise TorchdiagError(f'{file}: ignore in [tool.torchdiag] has to be a list of rule ids: ["sync-item-scalar"]')
    return Configuration(
        tuple(cast(list[str], ignore)), _text(file, settings, "min-gain"), _text(file, settings, "fail-on")
    )


def _text(file: Path, settings: dict[str, object], name: str) -> str | None:
    value = settings.get(name)
    if value is not None and not isinstance(value, str):
        raise TorchdiagError(f'{file}: {name} in [tool.torchdiag] has to be a text, such as "2%" or "high"')
    return value

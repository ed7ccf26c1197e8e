"""The grid of the ocean models: how many cells a batch of elements makes, their sizes, and shifts along an axis."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from torchdiag.models.workload import Setting

EAST, NORTH, UP = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Grid:
    """`shape` counts cells east, north and up; `widths` are their edges in metres: [X, 1, 1], [1, Y, 1], [1, 1, Z]."""

    shape: tuple[int, int, int]
    widths: tuple[Tensor, Tensor, Tensor]
    setting: Setting

    def between(self, axis: int) -> Tensor:
        """From each cell to the next along an axis in metres, so one less of them."""
        return 0.5 * (part(self.widths[axis], axis, 1) + part(self.widths[axis], axis, 0, -1))

    def random(self, low: float, high: float) -> Tensor:
        """A field of random numbers, [X, Y, Z]."""
        share = torch.rand(self.shape, device=self.setting.device, dtype=self.setting.dtype)
        return low + (high - low) * share


def grid(setting: Setting) -> Grid:
    """About as many cells as the batch has elements, eight times wider than high; thin layers on top, thick below."""
    edge = setting.batch_size ** (1 / 3)
    shape = (max(4, math.ceil(2 * edge)), max(4, math.ceil(2 * edge)), max(4, math.ceil(0.25 * edge)))
    lengths = (
        torch.full((shape[EAST],), 1e5),
        torch.full((shape[NORTH],), 1e5),
        torch.linspace(200, 20, shape[UP]),
    )
    views = ((-1, 1, 1), (1, -1, 1), (1, 1, -1))
    east, north, up = (
        length.to(setting.device, setting.dtype).view(view) for length, view in zip(lengths, views, strict=True)
    )
    return Grid(shape, (east, north, up), setting)


def part(field: Tensor, axis: int, start: int, stop: int | None = None) -> Tensor:
    """A field from one index to another along an axis; negative indices count from the end."""
    length = field.shape[axis]
    first = start % length
    end = length if stop is None else stop % length if stop < 0 else stop
    return field.narrow(axis, first, end - first)


def difference(field: Tensor, axis: int) -> Tensor:
    """Each cell from the next along an axis, so one less of them."""
    return part(field, axis, 1) - part(field, axis, 0, -1)


def walled(field: Tensor, axis: int) -> Tensor:
    """A zero before and behind along an axis: nothing goes through the walls."""
    widths = [0] * 6
    widths[2 * (2 - axis)] = widths[2 * (2 - axis) + 1] = 1
    return functional.pad(field, widths)


def sea(cells: Grid) -> Tensor:
    """1 where there is water, 0 below a bottom that is rough: [X, Y, Z], level 0 is the lowest."""
    east, north, up = cells.shape
    device, dtype = cells.setting.device, cells.setting.dtype
    bottom = torch.rand(east, north, 1, device=device) * (up / 2)
    return (torch.arange(up, device=device) >= bottom).to(dtype)

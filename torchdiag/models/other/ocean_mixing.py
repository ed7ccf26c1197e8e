"""Mixing along surfaces of equal density in an ocean model, by triads of slopes (Griffies et al. 1998).

Each face between two cells sees triads: each of the two cells with each of its faces across. Where surfaces are steep
the mixing is tapered off (Danabasoglu and McWilliams 1995). A step computes the mixing tensor; nothing learns.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass

import torch
from torch import Tensor

from torchdiag.models.other.ocean_grid import EAST, NORTH, UP, Grid, difference, grid, part, sea, walled
from torchdiag.models.stepping import Computation, inference_step
from torchdiag.models.workload import Setting, Workload

ALONG, STEEP = 1000.0, 50.0
"""Mixing along the surfaces, and what is left of it where they are steep, in m^2/s."""

STEEPEST, TAPER_WIDTH = 1e-3, 1e-4

REFERENCE, EXPANSION, EXPANSION_SLOPE, PRESSURE_EFFECT, CONTRACTION = 1024.0, 1.67e-4, 1e-5, 1.1e-4, 7.8e-4
"""A simple equation of state (Vallis 2017, equation 1.169): kg/m^3, 1/K, 1/K^2, 1/m, and by salinity in g/kg."""


@dataclass(frozen=True, slots=True)
class Water:
    """Temperature in degrees C, salinity in g/kg and whether there is water (1 or 0), all [X, Y, Z]; depth in m."""

    temperature: Tensor
    salinity: Tensor
    depth: Tensor
    sea: Tensor


class Triads:
    """Slopes of density surfaces, as each cell sees them through each of its faces."""

    def __init__(self, cells: Grid, water: Water) -> None:
        warmth = EXPANSION * (1 + PRESSURE_EFFECT * water.depth) + EXPANSION_SLOPE * (water.temperature - 10)
        self.by_temperature = -REFERENCE * warmth
        self.by_salinity = torch.full_like(water.salinity, REFERENCE * CONTRACTION)
        self.cells, self.water = cells, water
        self.least = max(1e-20, torch.finfo(water.salinity.dtype).tiny)
        self.open = [part(water.sea, axis, 1) * part(water.sea, axis, 0, -1) for axis in (EAST, NORTH, UP)]
        self.warming = [self._gradient(water.temperature, axis) for axis in (EAST, NORTH, UP)]
        self.salting = [self._gradient(water.salinity, axis) for axis in (EAST, NORTH, UP)]

    def _gradient(self, field: Tensor, axis: int) -> Tensor:
        return difference(field, axis) / self.cells.between(axis) * self.open[axis]

    def slopes(self, axis: int, across: int, side: int, face: int) -> tuple[Tensor, Tensor]:
        """Density's gradients at the faces along `axis`: along it, and along `across`.

        They are seen from the first (0) or second (1) cell of each face, whose first (0) or second (1) face across
        counts.
        """
        faces, length = self.cells.shape[axis] - 1, self.cells.shape[across]

        def chosen(gradient: Tensor) -> Tensor:
            return part(part(walled(gradient, across), across, face, face + length), axis, side, side + faces)

        by_temperature, by_salinity = (
            part(field, axis, side, side + faces) for field in (self.by_temperature, self.by_salinity)
        )
        along = by_temperature * self.warming[axis] + by_salinity * self.salting[axis]
        other = by_temperature * chosen(self.warming[across]) + by_salinity * chosen(self.salting[across])
        return along, other

    def slope(self, horizontal: Tensor, vertical: Tensor) -> tuple[Tensor, Tensor]:
        """Steepness of the surfaces, and 1 where they are flat to 0 where they are steep."""
        slope = -horizontal / (vertical.clamp(max=0) - self.least)
        return slope, 0.5 * (1 + torch.tanh((STEEPEST - slope.abs()) / TAPER_WIDTH))

    def horizontal(self, axis: int) -> tuple[Tensor, Tensor]:
        """Mixing through the faces along an axis in m^2/s, and the four tapered slopes that tilt it."""
        mixing, tilts = torch.zeros_like(self.open[axis]), list[Tensor]()
        for side in (0, 1):
            for face in (0, 1):
                slope, flat = self.slope(*self.slopes(axis, UP, side, face))
                mixing = mixing + (ALONG * flat).clamp(min=STEEP)
                tilts.append(flat * slope * self.open[axis])
        return mixing / 4 * self.open[axis], torch.stack(tilts)

    def vertical(self) -> tuple[Tensor, Tensor]:
        """Mixing through the top faces in m^2/s, and the eight tapered slopes that tilt it."""
        mixing, tilts = torch.zeros_like(self.open[UP]), list[Tensor]()
        for axis in (EAST, NORTH):
            for side in (0, 1):
                for face in (0, 1):
                    up, along = self.slopes(UP, axis, side, face)
                    slope, flat = self.slope(along, up)
                    mixing = mixing + ALONG * flat * slope.square()
                    tilts.append(flat * slope * self.open[UP])
        return mixing / 4 * self.open[UP], torch.stack(tilts)


def mixing(cells: Grid, water: Water) -> tuple[Tensor, ...]:
    """Mixing and tilts through the east, north and top faces."""
    triads = Triads(cells, water)
    return (*triads.horizontal(EAST), *triads.horizontal(NORTH), *triads.vertical())


def build(setting: Setting) -> Workload:
    """A batch of about N cells."""
    cells = grid(setting)
    depth = cells.widths[UP].flip(UP).cumsum(UP).flip(UP)
    water = Water(cells.random(0, 20), cells.random(33, 37), depth, sea(cells))
    model = Computation(mixing)
    return Workload(inference_step(setting, lambda: model(cells, water)), setting.batch_size, (model,))

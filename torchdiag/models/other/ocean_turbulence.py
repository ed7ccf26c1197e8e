"""Turbulent kinetic energy in an ocean model (Gaspar, Gregoris and Lefevre 1990): one time step.

Vertical mixing and dissipation are implicit, so each column solves a tridiagonal system; the flow carries the energy
with a superbee limiter (Roe 1986). Nothing learns.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass

import torch
from torch import Tensor

from torchdiag.models.other.ocean_grid import EAST, NORTH, UP, Grid, difference, grid, part, sea, walled
from torchdiag.models.stepping import Computation, inference_step
from torchdiag.models.workload import Setting, Workload

TIME_STEP = 3600.0
"""In seconds."""

TRANSPORT, DISSIPATION, HORIZONTAL_MIXING = 30.0, 0.7, 2000.0
"""Energy's vertical mixing in units of momentum's, dissipation's constant, and horizontal mixing in m^2/s."""

LEAD = 1.6
"""Weight of the present in the Adams-Bashforth step; the past weighs 1 - LEAD."""


@dataclass(frozen=True, slots=True)
class Ocean:
    """Fields [X, Y, Z]: energy in m^2/s^2 and its last tendency, flow through the east, north and top faces in m/s.

    `viscosity` is in m^2/s, `length` is the eddies' in m, `forcing` in m^2/s^3, `surface` [X, Y, 1] in m^3/s^3, and
    `sea` is 1 where there is water.
    """

    energy: Tensor
    tendency: Tensor
    flow: tuple[Tensor, Tensor, Tensor]
    viscosity: Tensor
    length: Tensor
    forcing: Tensor
    surface: Tensor
    sea: Tensor


def solve(below: Tensor, here: Tensor, above: Tensor, right: Tensor) -> Tensor:
    """Tridiagonal systems along the last dimension, all of the same shape, by forward elimination."""
    aboves, rights = list[Tensor](), list[Tensor]()
    for level in range(right.shape[-1]):
        pivot, value = here[..., level], right[..., level]
        if level > 0:
            pivot = pivot - below[..., level] * aboves[-1]
            value = value - below[..., level] * rights[-1]
        aboves.append(above[..., level] / pivot)
        rights.append(value / pivot)
    solution = [rights[-1]]
    for level in range(right.shape[-1] - 2, -1, -1):
        solution.append(rights[level] - aboves[level] * solution[-1])
    return torch.stack(solution[::-1], dim=-1)


def mixed_and_dissipated(cells: Grid, ocean: Ocean) -> Tensor:
    """Energy after a time step of vertical mixing, production and dissipation."""
    width = cells.widths[UP]
    open_faces = part(ocean.sea, UP, 1) * part(ocean.sea, UP, 0, -1)
    viscosity = 0.5 * (part(ocean.viscosity, UP, 1) + part(ocean.viscosity, UP, 0, -1))
    exchange = walled(TIME_STEP * TRANSPORT * viscosity * open_faces / cells.between(UP), UP)
    below, above = -part(exchange, UP, 0, -1) / width, -part(exchange, UP, 1) / width
    decay = TIME_STEP * DISSIPATION * ocean.energy.clamp(min=0).sqrt() / ocean.length
    right = (ocean.energy + TIME_STEP * ocean.forcing) * ocean.sea
    top = right[..., -1:] + TIME_STEP * ocean.surface / (0.5 * part(width, UP, -1))
    right = torch.cat([right[..., :-1], top], dim=-1)
    solved = solve(below, 1 - below - above + decay * ocean.sea, above, right)
    # Surface forcing may ask for more than there is: energy never falls below nothing.
    return solved.clamp(min=0) * ocean.sea


def advected(cells: Grid, field: Tensor, flow: Tensor, axis: int) -> Tensor:
    """A field's tendency from a flow through its faces along an axis, by the superbee scheme."""
    length, speed = cells.shape[axis], part(flow, axis, 0, -1)
    jump = difference(field, axis)
    jumps = walled(jump, axis)
    behind = torch.where(speed > 0, part(jumps, axis, 0, length - 1), part(jumps, axis, 2, length + 1))
    ratio = behind / torch.where(jump.abs() < 1e-20, torch.full_like(jump, 1e-20), jump)
    limiter = torch.maximum((2 * ratio).clamp(max=1), ratio.clamp(max=2)).clamp(min=0)
    courant = speed.abs() * TIME_STEP / cells.between(axis)
    middle = 0.5 * (part(field, axis, 1) + part(field, axis, 0, -1))
    flux = speed * middle - 0.5 * speed.abs() * (1 - limiter + courant * limiter) * jump
    return -difference(walled(flux, axis), axis) / cells.widths[axis]


def spread(cells: Grid, field: Tensor, water: Tensor, axis: int) -> Tensor:
    """A field's tendency from horizontal mixing along an axis."""
    open_faces = part(water, axis, 1) * part(water, axis, 0, -1)
    flux = HORIZONTAL_MIXING * difference(field, axis) / cells.between(axis) * open_faces
    return difference(walled(flux, axis), axis) / cells.widths[axis]


def time_step(cells: Grid, ocean: Ocean) -> tuple[Tensor, Tensor]:
    """The energy after a time step, and its tendency from the flow, which the next step needs."""
    energy = mixed_and_dissipated(cells, ocean)
    for axis in (EAST, NORTH):
        energy = energy + TIME_STEP * spread(cells, ocean.energy, ocean.sea, axis)
    tendency = torch.zeros_like(energy)
    for axis, flow in enumerate(ocean.flow):
        tendency = tendency + advected(cells, ocean.energy, flow, axis)
    tendency = tendency * ocean.sea
    energy = energy + TIME_STEP * (LEAD * tendency + (1 - LEAD) * ocean.tendency)
    return energy, tendency


def _open(flow: Tensor, water: Tensor, axis: int) -> Tensor:
    faces = part(water, axis, 1) * part(water, axis, 0, -1)
    last = torch.zeros_like(part(flow, axis, -1))
    return torch.cat([part(flow, axis, 0, -1) * faces, last], dim=axis)


def build(setting: Setting) -> Workload:
    """A batch of about N cells."""
    cells = grid(setting)
    water = sea(cells)
    ocean = Ocean(
        energy=cells.random(1e-5, 1e-3) * water,
        tendency=cells.random(-1e-9, 1e-9) * water,
        flow=(
            _open(cells.random(-1, 1), water, EAST),
            _open(cells.random(-1, 1), water, NORTH),
            _open(cells.random(-1e-4, 1e-4), water, UP),
        ),
        viscosity=cells.random(1e-4, 1e-2),
        length=cells.random(1, 50),
        forcing=cells.random(-1e-8, 1e-7),
        surface=cells.random(0, 1e-6)[..., :1],
        sea=water,
    )
    model = Computation(time_step)
    return Workload(inference_step(setting, lambda: model(cells, ocean)), setting.batch_size, (model,))

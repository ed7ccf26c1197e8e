"""The ocean models compute what they say: known densities, derivatives, solved columns, flows that conserve."""

import pytest

torch = pytest.importorskip("torch")

from torchdiag.models.other import ocean_density, ocean_mixing, ocean_turbulence  # noqa: E402
from torchdiag.models.other.ocean_grid import EAST, NORTH, UP, grid, part, sea  # noqa: E402
from torchdiag.models.workload import Setting  # noqa: E402

SETTING = Setting("eval", torch.device("cpu"), torch.float64, 500, "tiny")


def doubles(*numbers: float) -> "torch.Tensor":
    return torch.tensor(numbers, dtype=torch.float64)


def test_density_is_that_of_the_standard() -> None:
    # Absolute salinity, conservative temperature, pressure; densities of GSW 3.6, whose fit has 75 terms instead of 48.
    known = [(35, 10, 1000, 1031.28107), (20, 20, 1000, 1017.77538), (35.16504, 0, 0, 1028.10702)]
    for salinity, temperature, pressure, density in known:
        found = ocean_density.density(doubles(salinity), doubles(temperature), doubles(pressure))
        assert found.item() == pytest.approx(density, abs=2e-3)


def test_enthalpy_slope_is_the_derivative_of_the_volume_summed_over_pressure() -> None:
    salinity, temperature, pressure = doubles(35, 20, 5), doubles(2, 18, 29), doubles(4000, 1000, 50)
    temperature.requires_grad_(True)
    nodes = torch.linspace(0, 1, 2001, dtype=torch.float64).unsqueeze(1) * pressure
    volumes = 1 / ocean_density.density(salinity, temperature, nodes)
    enthalpy = torch.trapezoid(volumes, nodes * 1e4, dim=0)
    (expected,) = torch.autograd.grad(enthalpy.sum(), temperature)
    found = ocean_density.enthalpy_slope(salinity, temperature.detach(), pressure)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


def test_columns_are_solved() -> None:
    generator = torch.Generator().manual_seed(0)
    below, above, right = (torch.rand(3, 2, 7, dtype=torch.float64, generator=generator) for _ in range(3))
    here = 3 + right
    matrix = torch.diag_embed(here) + torch.diag_embed(below[..., 1:], offset=-1) + torch.diag_embed(above[..., :-1], 1)
    expected = torch.linalg.solve(matrix, right.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(ocean_turbulence.solve(below, here, above, right), expected)


@pytest.mark.parametrize("axis", [EAST, NORTH, UP])
def test_flow_and_mixing_move_energy_about_without_making_any(axis: int) -> None:
    cells = grid(SETTING)
    field, flow = cells.random(0, 1), cells.random(-1e-3, 1e-3)
    volume = cells.widths[EAST] * cells.widths[NORTH] * cells.widths[UP]
    gained = ocean_turbulence.advected(cells, field, flow, axis)
    assert gained.abs().max() > 0
    assert (gained * volume).sum().abs() < 1e-12 * (gained.abs() * volume).sum() * field.numel()
    if axis != UP:
        spread = ocean_turbulence.spread(cells, field, sea(cells), axis)
        assert (spread * volume).sum().abs() < 1e-12 * (spread.abs() * volume).sum() * field.numel()


def test_a_uniform_flow_carries_a_ramp_at_its_own_speed() -> None:
    cells = grid(SETTING)
    ramp = torch.arange(cells.shape[EAST], dtype=torch.float64).view(-1, 1, 1).expand(cells.shape).clone()
    gained = ocean_turbulence.advected(cells, ramp, torch.full(cells.shape, 2.0, dtype=torch.float64), EAST)
    # d/dt = -u dq/dx away from the walls: -2 m/s times 1 a cell of 1e5 m.
    torch.testing.assert_close(gained[2:-2], torch.full_like(gained[2:-2], -2e-5))


def test_flat_layers_mix_fully_along_and_never_across() -> None:
    cells = grid(SETTING)
    warm_above = torch.linspace(2, 20, cells.shape[UP], dtype=torch.float64).expand(cells.shape).clone()
    water = ocean_mixing.Water(
        warm_above, torch.full_like(warm_above, 35), torch.zeros_like(warm_above), torch.ones_like(warm_above)
    )
    east, east_tilt, north, _, up, up_tilt = ocean_mixing.mixing(cells, water)
    inner = slice(1, -1)  # the lowest and highest cells have a wall for one of their faces
    full = torch.full_like(east[..., inner], ocean_mixing.ALONG)
    torch.testing.assert_close(east[..., inner], full)
    torch.testing.assert_close(north[..., inner], torch.full_like(north[..., inner], ocean_mixing.ALONG))
    assert east_tilt.abs().max() == 0
    assert up.abs().max() == 0
    assert up_tilt.abs().max() == 0


def test_a_gentle_tilt_is_the_slope_of_the_layers() -> None:
    cells = grid(SETTING)
    # A degree in 50 m up, and one in 1e5 m east: layers of equal temperature fall by 50 m in 1e5 m, a slope of -5e-4.
    height = torch.cumsum(cells.widths[UP], UP) - 0.5 * cells.widths[UP]
    east = torch.arange(cells.shape[EAST], dtype=torch.float64).view(-1, 1, 1) * 1e5
    temperature = (height / 50 + east / 1e5).expand(cells.shape).clone()
    water = ocean_mixing.Water(
        temperature, torch.full_like(temperature, 35), torch.zeros_like(temperature), torch.ones_like(temperature)
    )
    _, _, _, _, _, tilts = ocean_mixing.mixing(cells, water)
    inner = part(tilts[:4], 1, 1, -1)  # east triads away from the walls
    torch.testing.assert_close(inner, torch.full_like(inner, -5e-4), rtol=1e-2, atol=0)

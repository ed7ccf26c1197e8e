"""How the enthalpy of sea water changes with its temperature, by the equation of state of 48 terms (TEOS-10).

The density is a quotient of two polynomials in salinity, temperature and pressure (McDougall et al. 2011, appendix K of
the TEOS-10 manual, whose coefficients these are). Everything is elementwise, nothing learns.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from dataclasses import dataclass

import torch
from torch import Tensor

from torchdiag.models.stepping import Computation, inference_step
from torchdiag.models.workload import Setting, Workload

PASCALS = 1e4
"""In a decibar."""

_NODES = ((0.0694318442029737, 0.1739274225687269), (0.3300094782075719, 0.3260725774312731))
"""Gauss-Legendre nodes and weights on 0..1, of four; the other two lie opposite."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """In pressure: the coefficient of each power, a field each, and its derivative by temperature."""

    coefficients: tuple[Tensor, ...]
    slopes: tuple[Tensor, ...]

    def at(self, pressure: Tensor) -> tuple[Tensor, Tensor]:
        """Value and derivative by temperature at a pressure in decibars."""
        return _horner(self.coefficients, pressure), _horner(self.slopes, pressure)


def _horner(coefficients: tuple[Tensor, ...], at: Tensor) -> Tensor:
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = coefficient + at * value
    return value


def numerator(salinity: Tensor, temperature: Tensor) -> Polynomial:
    """Of the density."""
    s, t, root = salinity, temperature, salinity.sqrt()
    zeroth = 9.998420897506056e2 + t * (2.839940833161907 + t * (-3.147759265588511e-2 + t * 1.181805545074306e-3))
    zeroth = zeroth + s * (-6.698001071123802 + t * (-2.986498947203215e-2 + t * 2.327859407479162e-4))
    fourth_order = 5.095422573880500e-4 + t * (-1.426984671633621e-5 + t * 1.645039373682922e-7)
    zeroth = zeroth + s * root * (-3.988822378968490e-2 + t * fourth_order)
    zeroth_slope = 2.839940833161907 + t * (2 * -3.147759265588511e-2 + t * (3 * 1.181805545074306e-3))
    zeroth_slope = zeroth_slope + s * (-2.986498947203215e-2 + t * (2 * 2.327859407479162e-4))
    mixed = 5.095422573880500e-4 + t * (2 * -1.426984671633621e-5 + t * (3 * 1.645039373682922e-7))
    zeroth_slope = zeroth_slope + s * root * mixed
    first = -2.233269627352527e-2 + t * (-3.436090079851880e-4 + t * 3.726050720345733e-6)
    first = first + s * (-1.806789763745328e-4 + t * 6.876837219536232e-7)
    first_slope = -3.436090079851880e-4 + t * (2 * 3.726050720345733e-6) + s * 6.876837219536232e-7
    second = (
        -3.087032500374211e-7 + t * (-1.988366587925593e-8 + t * -1.061519070296458e-11) + s * 1.550932729220080e-10
    )
    second_slope = -1.988366587925593e-8 + t * (2 * -1.061519070296458e-11)
    return Polynomial((zeroth, first, second), (zeroth_slope, first_slope, second_slope))


def denominator(salinity: Tensor, temperature: Tensor) -> Polynomial:
    """Of the density."""
    s, t, root = salinity, temperature, salinity.sqrt()
    plain = -2.349607444135925e-5 + t * (1.119513357486743e-6 + t * 6.743689325042773e-10)
    salty = 1.262937315098546e-7 + t * (9.527875081696435e-10 + t * -1.811147201949891e-11)
    rooted = -7.672876869259043e-9 + t * (-4.634182341116144e-11 + t * 2.681097235569143e-12)
    zeroth = 1 + t * (2.775927747785646e-3 + t * plain)
    zeroth = zeroth + s * (-7.521448093615448e-3 + t * (-2.764306979894411e-5 + t * salty) + s * 5.419326551148740e-6)
    zeroth = zeroth + s * root * (-3.303308871386421e-5 + t * (3.801564588876298e-7 + t * rooted))
    plain = 2 * -2.349607444135925e-5 + t * (3 * 1.119513357486743e-6 + t * (4 * 6.743689325042773e-10))
    salty = 2 * 1.262937315098546e-7 + t * (3 * 9.527875081696435e-10 + t * (4 * -1.811147201949891e-11))
    rooted = 2 * -7.672876869259043e-9 + t * (3 * -4.634182341116144e-11 + t * (4 * 2.681097235569143e-12))
    zeroth_slope = 2.775927747785646e-3 + t * plain + s * (-2.764306979894411e-5 + t * salty)
    zeroth_slope = zeroth_slope + s * root * (3.801564588876298e-7 + t * rooted)
    first = -2.742185394906099e-5 + t * (
        -3.212746477974189e-7 + t * (3.191413910561627e-9 + t * -1.931012931541776e-12)
    )
    first = first + s * (-1.105097577149576e-7 + t * 6.211426728363857e-10)
    first_slope = -3.212746477974189e-7 + t * (2 * 3.191413910561627e-9 + t * (3 * -1.931012931541776e-12))
    first_slope = first_slope + s * 6.211426728363857e-10
    second = -1.119011592875110e-10 + t * (
        -1.941660213148725e-11 + t * -1.864826425365600e-14 + s * 1.119522344879478e-14
    )
    second_slope = -1.941660213148725e-11 + t * (2 * -1.864826425365600e-14) + s * 1.119522344879478e-14
    third = -1.200507748551599e-15 + t * 6.057902487546866e-17
    third_slope = torch.full_like(t, 6.057902487546866e-17)
    return Polynomial((zeroth, first, second, third), (zeroth_slope, first_slope, second_slope, third_slope))


def density(salinity: Tensor, temperature: Tensor, pressure: Tensor) -> Tensor:
    """Density in kg/m^3 from absolute salinity in g/kg, conservative temperature in degrees C, pressure in decibars."""
    return numerator(salinity, temperature).at(pressure)[0] / denominator(salinity, temperature).at(pressure)[0]


def enthalpy_slope(salinity: Tensor, temperature: Tensor, pressure: Tensor) -> Tensor:
    """Derivative of the dynamic enthalpy by temperature, in J/(kg K): specific volume's slope, summed over pressure.

    Four Gauss-Legendre nodes do that to far below single precision.
    """
    above, below = numerator(salinity, temperature), denominator(salinity, temperature)
    total = torch.zeros_like(pressure)
    for node, weight in _NODES:
        for share in (node, 1 - node):
            at = share * pressure
            value, slope = above.at(at)
            under, under_slope = below.at(at)
            total = total + weight * (under_slope - under / value * slope) / value
    return total * pressure * PASCALS


def build(setting: Setting) -> Workload:
    """A batch of N samples of water: salinity 0 to 40 g/kg, -2 to 30 degrees, pressure 0 to 5000 decibars."""

    def uniform(low: float, high: float) -> Tensor:
        share = torch.rand(setting.batch_size, device=setting.device, dtype=setting.dtype)
        return low + (high - low) * share

    water = uniform(0, 40), uniform(-2, 30), uniform(0, 5000)
    model = Computation(enthalpy_slope)
    return Workload(inference_step(setting, lambda: model(*water)), setting.batch_size, (model,))

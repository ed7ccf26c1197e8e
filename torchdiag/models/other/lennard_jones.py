"""A network that learns the energy of two atoms apart (the Lennard-Jones potential) from energies and forces.

The force is the derivative of the predicted energy, taken one pair at a time and batched by `vmap`.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn import functional

from torchdiag.models.stepping import gradientless_step, training_step
from torchdiag.models.workload import Setting, Workload

WIDTH, HIDDEN = 16, 4
NEAREST, FARTHEST = 0.9, 2.5
"""Distances in units of the distance at which the potential is zero."""


def potential(distance: Tensor) -> Tensor:
    """The Lennard-Jones potential in units of its depth."""
    attraction = distance**-6
    return 4 * (attraction * attraction - attraction)


def slope(distance: Tensor) -> Tensor:
    """Its derivative by the distance."""
    attraction = distance**-6
    return 4 * (6 * attraction - 12 * attraction * attraction) / distance


class EnergyModel(nn.Module):
    """A vector between two atoms [3] to their energy [1], through its length: rotations change nothing."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(1, WIDTH), nn.Tanh()]
        for _ in range(HIDDEN - 1):
            layers += [nn.Linear(WIDTH, WIDTH), nn.Tanh()]
        self.layers = nn.Sequential(*layers, nn.Linear(WIDTH, 1))

    def forward(self, vector: Tensor) -> Tensor:
        """The energy of one pair."""
        return self.layers(vector.square().sum(dim=-1, keepdim=True).sqrt())


class Dynamics(nn.Module):
    """Vectors between atoms [N, 3] to energies [N, 1] and forces [N, 3]; a module, so that compilers see all of it."""

    def __init__(self) -> None:
        super().__init__()
        self.energy = EnergyModel()

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """The force on a pair is its energy's derivative, downhill."""
        weights: dict[str, Tensor] = dict(self.energy.named_parameters())

        def energy(vector: Tensor) -> Tensor:
            return functional_call(self.energy, weights, (vector,))

        slopes = vmap(jacrev(energy))(vectors)
        return vmap(energy)(vectors), -slopes.squeeze(1)


def build(setting: Setting) -> Workload:
    """A batch of N pairs of atoms; the network is as small as it is, so tiny only has fewer pairs."""
    model = Dynamics().to(setting.device, setting.dtype).train(setting.training)
    share = torch.rand(setting.batch_size, 1, device=setting.device, dtype=setting.dtype)
    distances = NEAREST + (FARTHEST - NEAREST) * share
    directions = torch.randn(setting.batch_size, 3, device=setting.device, dtype=setting.dtype)
    directions = functional.normalize(directions, dim=-1)
    vectors, energies, forces = distances * directions, potential(distances), -slope(distances) * directions
    if not setting.training:
        return Workload(gradientless_step(setting, lambda: model(vectors)), setting.batch_size, (model,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss() -> Tensor:
        energy, force = model(vectors)
        return functional.mse_loss(energy, energies) + 0.01 * functional.mse_loss(force, forces)

    return Workload(training_step(setting, optimizer, loss), setting.batch_size, (model,))

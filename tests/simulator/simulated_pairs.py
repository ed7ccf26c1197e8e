"""All pairs of a slow script and its fix. A bug that costs nothing, and scripts without one: `good_programs`."""

from simulator.host_pairs import host_pairs
from simulator.input_pairs import input_pairs
from simulator.memory_pairs import memory_pairs
from simulator.other_pairs import other_pairs
from simulator.simulated_program import Pair
from simulator.sync_pairs import sync_pairs
from simulator.transfer_pairs import transfer_pairs


def pairs() -> list[Pair]:
    """Each with the catalogue's id of its bug; no rule comes twice."""
    return [*sync_pairs(), *transfer_pairs(), *input_pairs(), *memory_pairs(), *host_pairs(), *other_pairs()]

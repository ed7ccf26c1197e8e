"""The loops of the replay: their definition, and that broken arguments do no harm, under sanitizers."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from torchdiag._native import replay

HERE = Path(__file__).parent
FLAGS = ["-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def test_graphs_of_every_kind_pass_the_sanitizers(tmp_path: Path) -> None:
    found = next((name for name in ("clang++", "clang++-14", "g++") if shutil.which(name)), None)
    if found is None:
        pytest.skip("no C++ compiler is installed")
    sources = [str(HERE / "replay_program.cpp"), str(HERE.parents[1] / "native" / "replay.cpp")]
    built = subprocess.run(
        [found, *FLAGS, *sources, "-o", tmp_path / "program"], capture_output=True, text=True, check=False
    )
    if "cannot find" in built.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_each_node_comes_at_its_latest_arrival():
    """Node 2 waits 1 for node 0 and 7 for node 1, which comes 5 after node 0; an edge without a lag does not count."""
    first, source = numbers(0, 0, 1, 4), numbers(0, 0, 1, 1)
    floor = numbers(10, replay.NO_EDGE, replay.NO_EDGE)
    assert replay.times(first, source, numbers(5, 1, 7, replay.NO_EDGE), floor).tolist() == [10, 15, 22]
    assert replay.times(first, source, numbers(5, 1, 7, 9), floor).tolist() == [10, 15, 24]


def test_the_order_keeps_to_the_wish_where_it_can():
    first, source = numbers(0, 1, 1, 1), numbers(2)
    order, kept = replay.order(first, source, numbers(1, 0, 2))
    assert order.tolist() == [1, 2, 0] and kept.tolist() == [True]


def test_a_circle_is_opened():
    order, kept = replay.order(numbers(0, 1, 2, 3), numbers(2, 0, 1), numbers(0, 1, 2))
    assert sorted(order.tolist()) == [0, 1, 2] and kept.tolist().count(False) == 1


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="nodes"):
        replay.order(numbers(0, 0), numbers(), numbers(0, 1))
    with pytest.raises(ValueError, match="nodes"):
        replay.times(numbers(0, 1), numbers(0), numbers(), numbers(0))
    with pytest.raises(ValueError, match="argument"):
        replay.times(numbers(0, 0, 1), numbers(1), numbers(1), numbers(0, 0))

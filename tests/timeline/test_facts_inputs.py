"""What operators were called with, from texts that may hold anything."""

import numpy as np
import pytest
from hand import trace
from written import Event, operator

from torchdiag.timeline.facts.facts import Facts
from torchdiag.timeline.facts.inputs import LONGEST_TEXT, Inputs, elements, inputs


def given(*arguments: dict) -> Inputs:
    events: list[Event] = [
        {**operator(100 * number, 50), "args": args} for number, args in enumerate(arguments)
    ]  # fmt: skip
    return Facts.of(trace(*events)).get(inputs)


def test_shapes_types_and_values_as_torch_writes_them():
    found = given(
        {
            "Input Dims": [[4, 8], [], [[4, 8], [4, 8]], [0]],
            "Input type": ["float", "Scalar", "TensorList", "c10::Half"],
            "Concrete Inputs": ["", "6", "", ""],
        }
    )
    assert found.dims(0) == ((4, 8), (), (), (0,))
    assert found.types(0) == ("float", "Scalar", "TensorList", "c10::Half")
    assert found.concrete(0) == ("", "6", "", "")
    assert found.recorded


def test_an_operator_without_arguments_has_none():
    found = given({})
    assert (found.dims(0), found.types(0), found.concrete(0)) == ((), (), ())
    assert not found.recorded
    assert found.codes(np.array([0])).tolist() == [-1]


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        pytest.param("[[1, 2", (), id="cut off"),
        pytest.param("", (), id="empty"),
        pytest.param("nonsense", (), id="no JSON"),
        pytest.param('{"a": [1]}', (), id="an object"),
        pytest.param("7", (), id="a number"),
        pytest.param("[7, null, [3]]", ((), (), (3,)), id="arguments that are no lists"),
        pytest.param('[["4", 8], [4.5], [true], [-1]]', ((), (), (), ()), id="sizes that are none"),
        pytest.param("[[99999999999999999999999]]", ((),), id="a size beyond any tensor"),
        pytest.param("[[9223372036854775807]]", ((2**63 - 1,),), id="the largest size"),
        pytest.param("[" * 5000 + "]" * 5000, (), id="nested without end"),
        pytest.param("[" + "[1]," * LONGEST_TEXT + "[1]]", (), id="far too long"),
    ],
)
def test_texts_that_make_no_sense_tell_nothing(dims: str, expected: tuple):
    assert given({"Input Dims": dims}).dims(0) == expected


def test_equal_shapes_have_equal_codes():
    one, other = {"Input Dims": [[4, 8]]}, {"Input Dims": [[4, 9]]}
    codes = given(one, other, one, {}).codes(np.arange(4)).tolist()
    assert codes[0] == codes[2] != codes[1] and codes[3] == -1


def test_elements_are_the_product_of_the_sizes():
    assert (elements((4, 8)), elements(()), elements((5, 0))) == (32, 1, 0)

"""One wrong byte costs the event it is in, at most its neighbour, and never the rest of the trace."""

import pytest
from scanning import rows, scanned

EVENT = """
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::mm<[{0}]>", "pid": 1, "tid": 2,
    "ts": {0}.125, "dur": 3,
    "args": {{
      "External id": {0}, "Input Dims": [[2, 3], []], "grid": [1, 1, {0}]
    }}
  }}"""
COUNT = 12
TEXT = (
    '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}],\n"traceEvents": ['
    + ",".join(EVENT.format(n) for n in range(100, 100 + COUNT))
    + '\n],\n"traceName": "a", "displayTimeUnit": "ms"}\n'
)
FIRST, LAST = TEXT.index("  {\n"), TEXT.rindex("}\n],")
SOUND = rows(scanned(TEXT))
WRONG = ('"', "{", "}", "[", "]", ",", ":", "\\", "\n", "\0", "x", "7", "")


@pytest.mark.parametrize("replaced", [0, 1])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_byte_replaced_added_or_removed(wrong: str, replaced: int) -> None:
    for place in range(FIRST, LAST, 3):
        trace = scanned(TEXT[:place] + wrong + TEXT[place + replaced :])
        found = rows(trace)
        assert sum(event in found for event in SOUND) >= COUNT - 2, place
        assert trace.document_starts == (0,), place
        assert trace.top_level["schemaVersion"] == b"1"


@pytest.mark.parametrize("length", [2, 30, 300, 900])
def test_a_hole(length: int) -> None:
    for place in range(FIRST, LAST - length, 5):
        trace = scanned(TEXT[:place] + TEXT[place + length :])
        found = rows(trace)
        assert sum(event in found for event in SOUND) >= COUNT - 3 - length // 150, place
        assert trace.document_starts == (0,), place

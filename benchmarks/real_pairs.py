"""What fixes of real programs win on this machine, next to what was predicted from a recording of the slow one.

Run `python benchmarks/real_pairs.py` on a quiet machine, with torch installed.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "rules")]

from real_pairs import outcome, real_pairs  # noqa: E402


def main() -> None:
    print(f"{'rule':<28} measured  predicted (low / expected / high), shares of a step")
    for pair in real_pairs():
        with tempfile.TemporaryDirectory() as folder:
            found = outcome(pair, Path(folder))
        if found is None:
            print(f"{pair.rule:<28} the rule says nothing")
            continue
        predicted = f"{found.low:.0%} / {found.predicted:.0%} / {found.high:.0%}"
        print(f"{pair.rule:<28} {found.measured:8.0%}  {predicted}", flush=True)


if __name__ == "__main__":
    main()

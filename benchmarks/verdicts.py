"""Precision, recall and gain error of `torchdiag diagnose` over every trace whose right verdict is known.

Real traces: the table of tests/rules/verdicts, where the traces lie beside the project. Simulated programs: slow and
fixed versions of tests/simulator, whose true step times are known. Run `python benchmarks/verdicts.py [--details]`.
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "rules"), str(ROOT / "tests" / "simulator")]

from real_verdicts import load_verdicts  # noqa: E402
from reference import corpus  # noqa: E402
from scoring import Score, score  # noqa: E402

import torchdiag  # noqa: E402


def real(details: bool) -> list[Score]:
    scores: list[Score] = []
    for verdict in load_verdicts():
        path = corpus.path_of(verdict.path)
        if not path.is_file():
            continue
        begun = time.perf_counter()
        found = score(verdict, torchdiag.diagnose(path))
        scores.append(found)
        marks = f"{len(found.right)} right, {len(found.missing)} missing, {len(found.wrong)} wrong"
        bound = "" if not found.bound else f", bound by {found.bound}"
        print(f"{verdict.path}: {marks}{bound} ({time.perf_counter() - begun:.1f} s)", flush=True)
        if details:
            for kind in ("missing", "wrong"):
                for line in getattr(found, kind):
                    print(f"    {kind}: {line}")
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--details", action="store_true", help="show what is missing and what is wrong")
    details = parser.parse_args().details
    scores = real(details)
    right, missing, wrong = (sum(len(getattr(item, kind)) for item in scores) for kind in ("right", "missing", "wrong"))
    demanded = sum(not told.endswith("(may)") for item in scores for told in item.right)
    bounds = sum(not item.bound for item in scores)
    if scores:
        print(f"real traces: {len(scores)}")
        print(f"  precision {right / max(right + wrong, 1):.3f} ({right} right, {wrong} wrong)")
        print(f"  recall {demanded / max(demanded + missing, 1):.3f} ({demanded} of {demanded + missing} demanded)")
        print(f"  bound_by right in {bounds} of {len(scores)}")


if __name__ == "__main__":
    main()

"""Precision, recall and gain error of `torchdiag diagnose` over every trace whose right verdict is known.

Real traces: the table of tests/rules/verdicts, where the traces lie beside the project. Simulated programs: slow and
fixed versions of tests/simulator, whose true step times are known. Run `python benchmarks/verdicts.py [--details]`.
"""

import argparse
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "rules"), str(ROOT / "tests" / "simulator")]

from judged_pairs import Judged, judged  # noqa: E402
from real_verdicts import load_verdicts  # noqa: E402
from reference import corpus  # noqa: E402
from scoring import Score, score  # noqa: E402
from simulator.simulated_pairs import pairs  # noqa: E402

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


def simulated(details: bool) -> list[Judged]:
    """Each pair of a slow and a fixed script, diagnosed."""
    found: list[Judged] = []
    for pair in pairs():
        with TemporaryDirectory() as folder:
            found.append(judged(pair, Path(folder)))
        if details:
            one = found[-1]
            told = f"{one.predicted_ns / 1e3:.0f} us predicted, {one.true_ns / 1e3:.0f} us true ({one.error:+.1%})"
            first = "first" if one.top == one.rule else f"first is {one.top or 'nothing'}"
            print(f"{one.rule}: {first}, {told}{', still told when fixed' if one.lingering else ''}", flush=True)
    return found


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
    found = simulated(details)
    errors = [abs(one.error) for one in found]
    print(f"simulated pairs: {len(found)}")
    print(f"  the bug is the first finding in {sum(one.top == one.rule for one in found)}")
    print(f"  silent once fixed in {sum(not one.lingering for one in found)}")
    off = (
        f"{median(errors):.1%} (median), {quantiles(errors, n=10)[-1]:.1%} (90th percentile), {max(errors):.1%} (worst)"
    )
    print(f"  predicted step time off by {off}")


if __name__ == "__main__":
    main()

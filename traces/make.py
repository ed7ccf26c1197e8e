"""Makes the generated traces of this folder and their answers: `python make.py [FOLDER]`.

The answers come from the schedule that the traces were played from (`ledger.py`), checked here against plain
arithmetic (`by_hand` in `recipes.py`); torchdiag has no part in them. Those of traces that a profiler recorded were
read off the file by hand and stand in `captured.json`.
"""

import gzip
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from kineto import Writer
from ledger import Ledger
from recipes import RECIPES, Scene

HERE = Path(__file__).parent


def main() -> None:
    """Write every trace and `answers.json` to the folder given, or to this one."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    answers: dict[str, Any] = json.loads((HERE / "captured.json").read_text(encoding="utf-8"))
    for name, recipe in RECIPES.items():
        scene = recipe()
        text, answer = play(scene)
        check(name, scene.by_hand, answer)
        answers[f"{name}.json.gz"] = {"about": inspect.getdoc(recipe), **answer}
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    (folder / "answers.json").write_text(json.dumps(answers, indent=2) + "\n", encoding="utf-8")


def play(scene: Scene) -> tuple[str, dict[str, Any]]:
    """The text of the trace and its answer."""
    writer = Writer(scene.machine, manner=scene.manner, **scene.top_level)
    events = list(writer.events())
    written, text = None, writer.document()
    if scene.cut_at is not None:
        kept = round(len(events) * scene.cut_at)
        while events[kept].owner is None:
            kept += 1
        whole, broken = [event.text for event in events[:kept]], events[kept].text
        text = writer.head() + ",\n".join([*whole, broken[: len(broken) // 2]])
        events = events[:kept]
        written = {event.owner for event in events if event.owner is not None}
    return text, answer_of(scene, Ledger(scene.machine, written=written, replays=scene.replays), len(events))


def answer_of(scene: Scene, ledger: Ledger, events: int) -> dict[str, Any]:
    """What there is to know of a scene."""
    answer: dict[str, Any] = {"events": events, "quality": list(scene.quality), "devices": [], "host": None}
    if scene.machine.activities:
        answer["devices"] = [ledger.device()]
    else:
        answer["host"] = ledger.driver_thread()
    answer["steps"] = ledger.steps()
    answer["top_places"] = {cause: ledger.top_place(cause) for cause in scene.tops}
    return answer


def check(name: str, by_hand: dict[str, int], answer: dict[str, Any]) -> None:
    """Stop when the ledger and plain arithmetic disagree, or a sum is off."""
    figures: dict[str, int] = dict(answer["host"] or {})
    for device in answer["devices"]:
        figures |= device["states_ns"] | device["idle_ns"]
        window = device["window"]["end_ns"] - device["window"]["start_ns"]
        if not window == sum(device["states_ns"].values()) == sum(device["headline_ns"].values()):
            raise SystemExit(f"{name}: the states do not sum to the window")
        if sum(device["idle_ns"].values()) != device["states_ns"]["idle"]:
            raise SystemExit(f"{name}: the causes do not sum to the idle time")
    for figure, expected in by_hand.items():
        if figures[figure] != expected:
            raise SystemExit(f"{name}: {figure} is {figures[figure]} in the ledger, {expected} by hand")


if __name__ == "__main__":
    main()

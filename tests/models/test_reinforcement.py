"""Learners tell the environment's time from their own, and their networks do what the papers say."""

import math

import pytest

torch = pytest.importorskip("torch")

from suite_models import needs  # noqa: E402

from torchdiag.models.catalogue import MODELS  # noqa: E402
from torchdiag.models.reinforcement.drq import PADDING, shifted  # noqa: E402
from torchdiag.models.reinforcement.squashed_gaussian import sample  # noqa: E402
from torchdiag.models.workload import ENVIRONMENT_MARK, Setting  # noqa: E402

LEARNERS = [name for name, entry in MODELS.items() if entry.domain == "reinforcement learning"]


def events_of_one_step(name: str, mode: str) -> list:
    needs(name)
    entry = MODELS[name]
    workload = entry.build(Setting(mode, torch.device("cpu"), torch.float32, entry.tiny_batch, "tiny"))
    workload.step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        workload.step()
    return list(profile.events())


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_step_marks_its_environment_once(name: str, mode: str) -> None:
    events = events_of_one_step(name, mode)
    assert [event.name for event in events].count(ENVIRONMENT_MARK) == 1


@pytest.mark.parametrize("name", ["soft_actor_critic", "drq"])
def test_an_environment_outside_torch_is_charged_with_none_of_its_operators(name: str) -> None:
    events = events_of_one_step(name, "train")
    (mark,) = [event for event in events if event.name == ENVIRONMENT_MARK]
    inside = [
        event.name
        for event in events
        if event is not mark
        and event.time_range.start >= mark.time_range.start
        and event.time_range.end <= mark.time_range.end
    ]
    assert inside == []


def test_strokes_are_drawn_inside_the_mark() -> None:
    events = events_of_one_step("LearningToPaint", "eval")
    (mark,) = [event for event in events if event.name == ENVIRONMENT_MARK]
    inside = {event.name for event in events if mark.time_range.start <= event.time_range.start < mark.time_range.end}
    assert "aten::pixel_shuffle" in inside


def test_images_are_moved_whole_by_at_most_the_padding() -> None:
    columns = torch.arange(10.0)
    moved = shifted(columns.expand(64, 2, 10, 10))
    allowed = [(columns + shift).clamp(0, 9) for shift in range(-PADDING, PADDING + 1)]
    kinds = set()
    for image in moved:
        assert (image == image[:1, :1]).all()  # all rows and channels alike
        (kind,) = [number for number, row in enumerate(allowed) if torch.equal(image[0, 0], row)]
        kinds.add(kind)
    assert len(kinds) > 4


def test_a_policys_log_probabilities_are_those_of_its_actions() -> None:
    mean, deviation = torch.tensor([[0.3]], dtype=torch.float64), torch.tensor([[-0.5]], dtype=torch.float64)
    torch.manual_seed(0)
    action, log_probability = sample(mean, deviation)
    # By the change of variables: the density of atanh(a) divided by |da/dx| = 1 - a^2.
    a, spread = action.item(), math.exp(-0.5)
    raw = math.atanh(a)
    normal = math.exp(-0.5 * ((raw - 0.3) / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
    assert log_probability.item() == pytest.approx(math.log(normal / (1 - a * a)), abs=1e-9)

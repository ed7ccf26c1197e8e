"""Algorithms inside models agree with slow, independent ones: trees, beams, gradients of samples, forces, masks."""

from itertools import product

import pytest

torch = pytest.importorskip("torch")

from suite_models import needs  # noqa: E402
from torch.nn import functional  # noqa: E402

from torchdiag.models.attention import LayerShape  # noqa: E402
from torchdiag.models.catalogue import MODELS  # noqa: E402
from torchdiag.models.language.nanogpt import Gpt  # noqa: E402
from torchdiag.models.language.translation import Transformer  # noqa: E402
from torchdiag.models.other import meta_learning  # noqa: E402
from torchdiag.models.other.grammar import inside  # noqa: E402
from torchdiag.models.other.lennard_jones import Dynamics, potential, slope  # noqa: E402
from torchdiag.models.speech.recognizer import BEAMS, START, Sizes, SpeechTransformer  # noqa: E402
from torchdiag.models.workload import Setting  # noqa: E402


def likelihood(leaves: "torch.Tensor", rules: "torch.Tensor", first: int, last: int, symbol: int, spans: int) -> float:
    """The probability that a symbol yields a stretch, by trying every split and every pair of halves."""
    if last - first == 1:
        return 0.0 if symbol < spans else leaves[first, symbol - spans].exp().item()
    if symbol >= spans:
        return 0.0
    symbols = spans + leaves.shape[1]
    return sum(
        rules[symbol, left * symbols + right].item()
        * likelihood(leaves, rules, first, split, left, spans)
        * likelihood(leaves, rules, split, last, right, spans)
        for split in range(first + 1, last)
        for left, right in product(range(symbols), repeat=2)
    )


def test_the_inside_algorithm_sums_over_all_trees() -> None:
    torch.manual_seed(0)
    spans, classes, length = 2, 2, 4
    leaves = torch.rand(1, length, classes, dtype=torch.float64).log()
    rules = torch.rand(spans, (spans + classes) ** 2, dtype=torch.float64).softmax(dim=1)
    starts = torch.rand(spans, dtype=torch.float64).log_softmax(dim=0)
    whole = sum(
        starts[symbol].exp().item() * likelihood(leaves[0], rules, 0, length, symbol, spans) for symbol in range(spans)
    )
    assert inside(leaves, rules, starts).exp().item() == pytest.approx(whole, rel=1e-9)


def test_beam_search_finds_the_likeliest_characters() -> None:
    torch.manual_seed(0)
    # With no more characters than beams nothing is pruned after the first step, so the search has to be exact.
    shape = LayerShape(16, 2, 32)
    sizes = Sizes(layers=1, shape=shape, features=4, characters=BEAMS, utterance=6, transcript=4)
    model = SpeechTransformer(sizes).eval()
    with torch.no_grad():
        model.character.weight.mul_(5)
        utterances = torch.randn(3, 6, 4)
        found = model.recognize(utterances, 2)
        memory = model.encode(utterances)
        scores = {}
        for pair in product(range(BEAMS), repeat=2):
            characters = torch.tensor([[START, *pair]]).expand(3, -1)
            logits = model.decode(memory, characters[:, :-1]).log_softmax(dim=-1)
            scores[pair] = logits.gather(2, characters[:, 1:].unsqueeze(-1)).sum(dim=(1, 2))
    best = [max(scores, key=lambda pair: scores[pair][row].item()) for row in range(3)]
    assert [tuple(row) for row in found.tolist()] == best


def test_no_word_sees_those_after_it() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(1, 50, (2, 8))
    changed = tokens.clone()
    changed[:, 5:] = 0
    gpt = Gpt(50, 16, 32, 2, 2).eval()
    translator = Transformer(50, 8, LayerShape(32, 2, 64), 2).eval()
    with torch.no_grad():
        for logits in (gpt, lambda words: translator(tokens, words)):
            before, after = logits(tokens), logits(changed)
            torch.testing.assert_close(before[:, :5], after[:, :5])
            assert not torch.allclose(before[:, 5:], after[:, 5:])


def test_forces_are_the_downhill_slope_of_the_energy() -> None:
    torch.manual_seed(0)
    model = Dynamics().double()
    vectors = torch.randn(4, 3, dtype=torch.float64)
    _, forces = model(vectors)
    for axis in range(3):
        step = torch.zeros(3, dtype=torch.float64)
        step[axis] = 1e-6
        numeric = (model(vectors + step)[0] - model(vectors - step)[0]).squeeze(1) / 2e-6
        torch.testing.assert_close(forces[:, axis], -numeric, rtol=1e-5, atol=1e-7)


def test_two_atoms_are_at_rest_at_the_bottom_of_their_potential() -> None:
    distance = torch.tensor([2 ** (1 / 6)], dtype=torch.float64)
    assert potential(distance).item() == pytest.approx(-1)
    assert slope(distance).item() == pytest.approx(0, abs=1e-12)


def test_each_samples_gradient_is_clipped_by_itself() -> None:
    needs("functorch_dp_cifar10")
    from torchdiag.models.other.privacy import CLIP, PerSample  # noqa: PLC0415 - needs torchvision

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 5)).double()
    images, labels = torch.randn(6, 3, 2, 2, dtype=torch.float64), torch.randint(5, (6,))
    images[0] *= 100
    found, loss = PerSample(network)(images, labels)
    expected = {name: torch.zeros_like(parameter) for name, parameter in network.named_parameters()}
    for image, label in zip(images, labels, strict=True):
        one = functional.cross_entropy(network(image.unsqueeze(0)), label.unsqueeze(0))
        gradients = torch.autograd.grad(one, list(network.parameters()))
        length = torch.cat([gradient.flatten() for gradient in gradients]).norm()
        for (name, total), gradient in zip(expected.items(), gradients, strict=True):
            expected[name] = total + gradient * min(1.0, (CLIP / length).item())
    for name, total in expected.items():
        torch.testing.assert_close(found[name], total, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(loss, functional.cross_entropy(network(images), labels))


@pytest.mark.parametrize("learner", [meta_learning.InTurn, meta_learning.AtOnce])
def test_meta_learning_differentiates_through_the_fine_tuning(learner: type) -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3, stride=3),
        torch.nn.BatchNorm2d(2, track_running_stats=False),
        torch.nn.Flatten(),
        torch.nn.Linear(2 * 9 * 9, 5),
    ).double()
    tasks = meta_learning._random_tasks(
        Setting("train", torch.device("cpu"), torch.float64, 2, "tiny"), count=2, shots=1
    )
    in_turn = meta_learning.InTurn(network, steps=2, rate=0.1)
    weights = list(network.parameters())
    if learner is meta_learning.InTurn:
        gradients = torch.autograd.grad(in_turn(tasks), weights)
    else:
        gradients = tuple(learner(network, steps=2, rate=0.1)(tasks)[0].values())
    direction = [torch.randn_like(weight) for weight in weights]
    around = []
    with torch.no_grad():
        for distance in (1e-6, -2e-6):
            torch._foreach_add_(weights, direction, alpha=distance)
            around.append(in_turn(tasks).item())
    slope_there = sum((gradient * way).sum().item() for gradient, way in zip(gradients, direction, strict=True))
    assert slope_there == pytest.approx((around[0] - around[1]) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("name", [name for name, entry in MODELS.items() if entry.fixed_batch])
def test_a_fixed_batch_stays_what_it_is(name: str) -> None:
    needs(name)
    entry = MODELS[name]
    built = [
        entry.build(Setting("eval", torch.device("cpu"), torch.float32, batch, "tiny")).batch_size for batch in (1, 7)
    ]
    assert built[0] == built[1]

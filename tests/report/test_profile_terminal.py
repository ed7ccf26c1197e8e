"""The page of a run: what was run and how fast, and nothing of a target obeyed."""

import io
from pathlib import Path

import pytest
import runs
from report import breakdowns
from rich.cells import cell_len

from torchdiag.history.run_result import Failure, Gpu, MemoryResult, PassResult, TunePoint, TuneResult
from torchdiag.report import profile_json, profile_words
from torchdiag.report.profile_terminal import print_profile
from torchdiag.report.terminal import canvas

MS = runs.MS
FOLDER = Path("torchdiag-runs/resnet18-train-20260102-120000")


def page(result, breakdown=None, width=100):
    stream = io.StringIO()
    print_profile(result, breakdown, None, FOLDER, canvas(stream, width))
    return stream.getvalue()


def words(text):
    return " ".join(text.split())


def gpu_result():
    environment = runs.msgspec.structs.replace(
        runs.result().environment, device="cuda:0", gpus=(Gpu(index=0, name="NVIDIA H200", memory_bytes=1),)
    )
    timed = PassResult(name="timed", step_ns=(4 * MS,) * 3, device_step_ns=(10 * MS, 11 * MS, 12 * MS))
    memory = MemoryResult(
        peak_rss_bytes=10**9,
        gpu_peak_allocated_bytes=3 * 10**9,
        gpu_peak_reserved_bytes=4 * 10**9,
        gpu_allocation_retries=1,
    )
    return runs.result(environment=environment, passes=(timed,), memory=memory, batch_size=None)


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("result", [runs.result(), gpu_result(), runs.result(recorder=None, passes=(), memory=None)])
def test_every_line_fits_but_the_command(result, width):
    lines = page(result, breakdowns.host_only(), width).splitlines()
    assert all(cell_len(line) <= width for line in lines if not line.startswith("See it in Perfetto"))


def test_the_head_says_what_was_run_on_what_and_how_fast():
    text = words(page(runs.result()))
    assert text.startswith(
        "resnet18, training, batch 2 (tiny size), fp32, on CPU (EPYC, 2 threads), torch 2.14.1 step 100 ms "
        "median of 5 steps without the profiler; half of them 99.0 to 101 ms, all 98.0 to 102 ms; 20 samples a second"
    )
    assert "recorded 1.20 times" in text
    assert "2.00 times with stacks and shapes; 1.50 times while exceptions were watched" in text
    assert "memory 800 MB" in text
    assert "exceptions 3 a step 1 in Python, 2 in C++; 0.33 garbage collections, 1 warning (over 3 steps)" in text
    assert "recorder 2.00 µs added to each Python exception by sys.settrace, 100 ns to each call" in text


def test_a_clean_model_shows_zero():
    clean = runs.recorder(exceptions=(), throws=(), collections=(), warnings=())
    assert "exceptions 0 a step 0 in Python, 0 in C++; 0 garbage collections, 0 warnings" in words(
        page(runs.result(recorder=clean))
    )
    missing = runs.recorder(exceptions=None, throws=())
    assert "Python not recorded, 0 in C++" in words(page(runs.result(recorder=missing)))


def test_on_a_gpu_its_own_time_is_quoted():
    text = words(page(gpu_result()))
    assert "on cuda:0 (NVIDIA H200), torch 2.14.1 step 11.0 ms" in text
    assert "the host's part 4.00 ms" in text
    assert "memory 3.00 GB peak of the GPU's tensors in the timed steps, 4.00 GB reserved, 1 retry" in text


def test_what_was_not_as_asked_for_is_told():
    passes = (PassResult(name="timed", step_ns=(MS, 2 * MS, 3 * MS, 4 * MS), note="a note"),)
    text = words(page(runs.result(passes=passes, steps_found_by="dataloader")))
    assert "timed pass: a note." in text
    assert "A step is one iteration of the DataLoader." in text
    assert "Step times vary much" in text
    assert "vary" not in page(runs.result())


def test_the_breakdown_and_the_way_to_the_trace_end_the_page():
    text = page(runs.result(), breakdowns.host_only())
    assert "the main thread spent 70 %" in words(text)
    assert text.splitlines()[-1] == f"See it in Perfetto: torchdiag open {FOLDER}"
    assert "See it" not in page(runs.result())


def test_the_curve_of_batch_sizes():
    points = (
        TunePoint(batch_size=1, step_ns=10 * MS, samples_per_s=100.0),
        TunePoint(batch_size=2, step_ns=10 * MS, samples_per_s=200.0, gpu_peak_allocated_bytes=10**9),
        TunePoint(batch_size=4, failure=Failure(kind="out-of-memory", message="Out of memory.")),
    )
    text = page(runs.result(tune=TuneResult(points=points, chosen=2, stopped_because="memory ran out")))
    one, two, four = [line for line in text.splitlines() if "samples/s" in line or "Out of memory" in line]
    assert "memory ran out" in text
    assert (one[0], two[0]) == (" ", "*")
    assert two.count("█") == 2 * one.count("█") > 0
    assert "1.00 GB" in two
    assert "4  Out of memory." in four


def test_nothing_of_a_target_is_obeyed():
    options = runs.options(target=breakdowns.HOSTILE, target_kind="script", script_args=(breakdowns.HOSTILE,))
    environment = runs.msgspec.structs.replace(runs.result().environment, cpu=breakdowns.HOSTILE)
    passes = (PassResult(name="timed", step_ns=(MS,), note=breakdowns.HOSTILE),)
    result = runs.result(options=options, environment=environment, passes=passes)
    assert all(character.isprintable() or character == "\n" for character in page(result))
    document = profile_json.dumps(result)
    assert document.isascii()
    assert "\x1b" not in document


def test_a_failure_names_the_last_lines_and_where_all_are(tmp_path):
    (tmp_path / "output.log").touch()
    failure = Failure(kind="exit", message="It exited with 3.", output_tail="one\ntwo")
    assert profile_words.failed(failure, tmp_path) == (
        f"It exited with 3.\n\n  | one\n  | two\n\nAll of its output: {tmp_path / 'output.log'}"
    )
    assert profile_words.interrupted(runs.result(), FOLDER).startswith("interrupted; what was measured (warm-up, timed")
    assert profile_words.interrupted(runs.result(passes=()), FOLDER) == "interrupted"


def test_what_there_is_to_know_about_the_model_is_said():
    note = "rebuilt from torchvision's parts, as detectron2 is not installed"
    assert f"resnet18: {note}." in words(page(runs.result(model_note=note), width=200))

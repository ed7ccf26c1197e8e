"""The throw probe on small C++ programs, built here, and in a Python process; skipped where no compiler is."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchdiag.capture import throw_probe
from torchdiag.capture.cpp_names import demangle
from torchdiag.errors import TorchdiagError

SOURCE = Path(__file__).parents[2] / "native" / "probe"
PROGRAM = Path(__file__).with_name("throw_program.cpp")
COMPILER = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the probe is for Linux"),
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler"),
]

FLAGS = ["-std=c++17", "-O2", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"]
LIBRARY_FLAGS = [
    *("-shared", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"),
    *("-ftls-model=initial-exec", "-fasynchronous-unwind-tables", "-Wl,--as-needed"),
]


def compile_with(*arguments):
    return subprocess.run([COMPILER, *FLAGS, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("probe")


@pytest.fixture(scope="module")
def probe(folder):
    """The probe, built from its source."""
    library = folder / "libprobe.so"
    built = compile_with(*LIBRARY_FLAGS, SOURCE / "throw_probe.cpp", "-o", library, "-ldl")
    assert built.returncode == 0, built.stderr
    return library


@pytest.fixture(scope="module")
def program(folder):
    """A program that throws, into which the probe is preloaded."""
    binary = folder / "program"
    built = compile_with("-I", SOURCE, PROGRAM, "-o", binary, "-ldl")
    assert built.returncode == 0, built.stderr
    return binary


@pytest.fixture(scope="module")
def run(program, probe):
    """Runs the program with the probe preloaded, and returns its lines."""

    def run(what, *, expected=0):
        environment = {**os.environ, "LD_PRELOAD": str(probe)}
        done = subprocess.run(
            [program, what], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == expected, done.stderr
        return done.stdout.splitlines()

    return run


def test_off_records_nothing(run):
    assert run("off") == ["off thrown=0 dropped=0 throws=0 catches=0 threads=0 disorder=0"]


def test_throws_from_four_threads_are_counted_exactly(run):
    assert run("exact") == ["exact thrown=8000 dropped=0 throws=8000 catches=8000 threads=4 disorder=0"]


def test_a_full_buffer_turns_away_and_counts_what_it_turned_away(run):
    full, again = run("overflow")
    thrown, dropped, throws, catches = map(int, re.findall(r"\d+", full)[:4])
    assert thrown == 80000
    assert throws + dropped == thrown
    assert throws + catches == 32768
    # Once emptied it takes more.
    assert again.startswith(f"again thrown=80005 dropped={dropped} throws=5 catches=5 ")


def test_read_while_threads_throw_nothing_is_lost_twice_or_out_of_order(run):
    (line,) = run("while")
    thrown, dropped, throws, catches, _, disorder = map(int, re.findall(r"\d+", line))
    assert (thrown, disorder) == (80000, 0)
    assert throws + dropped == thrown
    assert catches <= throws


def test_a_forked_child_starts_empty(run):
    first, second, own, parent = run("fork")
    assert first == "child thrown=0 dropped=0 throws=0 catches=0 threads=0 disorder=0"
    assert second == "child thrown=2 dropped=0 throws=2 catches=2 threads=1 disorder=0"
    assert own == "pid 1"
    assert parent == "parent thrown=3 dropped=0 throws=3 catches=3 threads=1 disorder=0"


def test_an_exception_thrown_while_another_unwinds(run):
    lines = [line.split() for line in run("nested")]
    assert [line[:2] for line in lines[:2]] == [["0", "St13runtime_error"], ["0", "i"]]
    outer, inner = lines[0][2], lines[1][2]
    assert [(line[0], line[-1]) for line in lines[2:]] == [("1", inner), ("1", outer)]


def test_rethrows_are_no_new_exceptions(run):
    assert run("rethrow") == ["rethrow thrown=1 dropped=0 throws=1 catches=1 threads=1 disorder=0"]


def test_where_it_was_thrown_and_what(run, program):
    place, name, cut, nowhere = run("place")
    found, library, *_, has_offset, length = place.split()
    assert (found, has_offset) == ("1", "1")
    assert Path(library) == program
    assert name == "N4shop4SoldE" and int(length) == len(name)
    assert demangle(name) == "shop::Sold"
    assert cut == f"1 {library[:3]}"
    assert nowhere == "0"


def test_an_exception_that_nobody_catches(run):
    (line,) = run("terminate", expected=7)
    assert line.startswith("terminate thrown=1 dropped=0 throws=1 ")


def test_it_costs_little_beside_a_throw(run, program):
    plain = subprocess.run([program, "cost"], capture_output=True, text=True, check=True, timeout=60)
    without = min(map(float, plain.stdout.split()))
    off, on = map(float, run("cost")[0].split())
    print(f"a throw and its catch: {without} ns without the probe, {off} ns with it off, {on} ns with it on")
    # Best of eight runs of this on a busy machine: 1558, 1646 and 1759 ns. The bounds allow for a single run.
    assert off < 1.5 * without
    assert on < 2.5 * without


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_sanitizers_find_nothing(folder, sanitizer):
    binary = folder / f"program-{sanitizer[:4]}"
    sanitize = f"-fsanitize={sanitizer}"
    built = compile_with(
        *("-rdynamic", sanitize, "-fno-sanitize-recover=all", "-I", SOURCE),
        *(PROGRAM, SOURCE / "throw_probe.cpp", "-o", binary, "-ldl"),
    )
    if built.returncode != 0 and "cannot find" in built.stderr:
        pytest.skip(f"no {sanitizer} sanitizer on this machine")
    assert built.returncode == 0, built.stderr
    for what, start in [("exact", "exact thrown=8000 dropped=0 throws=8000 "), ("while", "while thrown=80000 ")]:
        done = subprocess.run([binary, what], capture_output=True, text=True, check=False, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(start)
    done = subprocess.run([binary, "nested"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4), done.stderr


def test_it_brings_no_runtime_of_its_own(probe):
    listed = subprocess.run(["readelf", "-d", probe], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"NEEDED.*\[(\S+?)\]", listed) in (["libc.so.6"], ["libdl.so.2", "libc.so.6"])


PLUGIN = r"""
#include <stdexcept>
namespace plugin { struct Failed : std::runtime_error { using std::runtime_error::runtime_error; }; }
extern "C" __attribute__((noinline)) void refuse() { throw plugin::Failed("no"); }
extern "C" int fail(int times) {
  int caught = 0;
  for (int i = 0; i < times; ++i) {
    try { refuse(); } catch (const std::exception&) { ++caught; }
  }
  return caught;
}
"""

SCRIPT = """
import ctypes, json, os, pathlib, sys, threading
from torchdiag.capture import throw_probe
from torchdiag.capture.clock import now_ns
from torchdiag.capture.throw_recorder import ThrowRecorder
plugin = ctypes.CDLL(sys.argv[1])
throw_probe.LIBRARY = pathlib.Path(sys.argv[2])
assert throw_probe.available() == throw_probe.Availability(True, True, "")
assert plugin.fail(2) == 2
began = now_ns()
with ThrowRecorder() as recorder:
    for k in (2, 0, 3):
        assert plugin.fail(k) == k
        recorder.step()
    thread = threading.Thread(target=plugin.fail, args=(4,))
    thread.start()
    thread.join()
assert plugin.fail(1) == 1
summary = recorder.summary()
assert throw_probe.drain().throws == ()
with ThrowRecorder(max_throws=3) as small:
    plugin.fail(5)
(site,) = summary.sites
print(json.dumps({
    "steps": [step.count for step in summary.steps],
    "type": site.type, "library": site.library, "symbol": site.symbol, "count": site.count, "caught": site.caught,
    "positive": site.total_ns > 0,
    "within": all(began < t.time_ns < t.caught_ns < now_ns() for t in summary.throws),
    "main": sum(t.thread_id == os.getpid() for t in summary.throws),
    "thrown": summary.thrown, "dropped": summary.dropped,
    "small": [len(small.summary().throws), small.summary().dropped],
}))
"""


@pytest.fixture(scope="module")
def installed(probe):
    """Lets `throw_probe` take the library built here, where torchdiag itself was built without one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(throw_probe, "LIBRARY", probe)
        yield


def test_in_python(folder, installed):
    source = folder / "plugin.cpp"
    source.write_text(PLUGIN)
    plugin = folder / "plugin.so"
    built = compile_with("-shared", "-fPIC", source, "-o", plugin)
    assert built.returncode == 0, built.stderr
    environment = {**os.environ, **throw_probe.environment()}
    arguments = [sys.executable, "-c", SCRIPT, str(plugin), str(throw_probe.LIBRARY)]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {
        "steps": [2, 0, 3, 4],
        "type": "plugin::Failed",
        "library": str(plugin),
        "symbol": "refuse",
        "count": 9,
        "caught": 9,
        "positive": True,
        "within": True,
        "main": 5,
        "thrown": 9,
        "dropped": 0,
        "small": [3, 2],
    }


def test_without_the_probe_it_says_so(installed):
    state = throw_probe.available()
    assert state.loadable and not state.loaded
    assert "preloaded" in state.reason
    with pytest.raises(TorchdiagError, match="preloaded"):
        throw_probe.start()
    with pytest.raises(TorchdiagError, match="preloaded"):
        throw_probe.drain()
    throw_probe.stop()


def test_where_it_was_not_built_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(throw_probe, "LIBRARY", tmp_path / "none.so")
    state = throw_probe.available()
    assert not state.loadable and "compiler" in state.reason
    with pytest.raises(TorchdiagError, match="compiler"):
        throw_probe.environment()


def test_a_path_that_cannot_be_preloaded(monkeypatch, tmp_path):
    library = tmp_path / "a folder" / "probe.so"
    library.parent.mkdir()
    library.touch()
    monkeypatch.setattr(throw_probe, "LIBRARY", library)
    assert "spaces" in throw_probe.available().reason


def test_other_systems(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "Linux" in throw_probe.available().reason


def test_what_is_preloaded_already_stays(installed, probe):
    assert throw_probe.environment({}) == {"LD_PRELOAD": str(probe)}
    assert throw_probe.environment({"LD_PRELOAD": "/a.so b.so"}) == {"LD_PRELOAD": f"/a.so:b.so:{probe}"}
    assert throw_probe.environment({"LD_PRELOAD": f"{probe}:/a.so"}) == {"LD_PRELOAD": f"/a.so:{probe}"}


def test_cpp_names():
    assert demangle("_ZN3c106detail14torchCheckFailEPKcS2_jS2_") == (
        "c10::detail::torchCheckFail(char const*, char const*, unsigned int, char const*)"
    )
    assert demangle("main") == "main"
    assert demangle("") == ""
    assert demangle("not a name") == "not a name"

"""Targets that fail, each for real: what is said, what is kept, and that nothing is left running or half written.

Those that need torch are small scripts whose steps are marked by `step()`, so that torch is all they import.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from torchdiag.capture import failures, parent
from torchdiag.errors import TorchdiagError
from torchdiag.history.profile_options import ProfileOptions
from torchdiag.history.run_result import RESULT, read

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)


# Steps 0 to 2 are left out, 3 and 4 timed; the light pass begins with step 5.
STEPS = """
import os, signal, sys, time
import torch
from torchdiag.capture.steps import step
weight = torch.ones(4, 4)
def one(): weight.matmul(weight)
for number in range(200):
    one()
    step()
"""
COUNTS = {"skip": 3, "steps": 2, "light_steps": 1, "detailed_steps": 1}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a script as a target; the result, which is what was written as well."""
    monkeypatch.chdir(tmp_path)

    def run(script, **more):
        Path("script.py").write_text(textwrap.dedent(script))
        options = ProfileOptions(target="script.py", target_kind="script", **more)
        result = parent.run(options, Path("out"), on_event=lambda _: None)
        assert read(Path("out")) == result
        left = {path.name for path in Path("out").iterdir()} - {RESULT, "output.log", "trace.json.gz", "detail.json.gz"}
        assert left == set()
        return result

    return run


def passes(result):
    return [one.name for one in result.passes]


def test_a_script_that_raises(run):
    result = run(
        """
        import sys
        print("before")
        sys.stdout.buffer.write(b"\\xff\\x00 binary \\x1b[31m\\n")
        def deeper():
            raise ValueError("no luck\\nat all")
        deeper()
        """
    )
    assert result.status == "failed"
    assert (result.failure.kind, result.failure.message) == ("exception", "The target raised ValueError: no luck")
    # The script's frames and no other.
    assert result.failure.traceback.count("  File ") == 2
    assert 'script.py", line 6, in deeper' in result.failure.traceback
    lines = result.failure.output_tail.splitlines()
    assert lines[:2] == ["before", "\\xff\\x00 binary \\x1b[31m"]
    assert lines[-2:] == ["ValueError: no luck", "at all"]
    assert b"\xff\x00 binary" in Path("out/output.log").read_bytes()


def test_a_syntax_error_is_the_scripts(run):
    result = run("x = = 1\n")
    assert result.failure.kind == "exception"
    assert "SyntaxError" in result.failure.output_tail


@pytest.mark.parametrize(
    ("script", "code"),
    [("import sys; sys.exit(3)", 3), ("import sys; sys.exit('bad news')", 1), ("import os; os._exit(7)", 7)],
)
def test_a_script_that_exits(run, script, code):
    result = run(script)
    assert (result.failure.kind, result.failure.exit_code) == ("exit", code)
    assert f"exited with code {code}" in result.failure.message
    assert ("bad news" in result.failure.output_tail) == ("bad" in script)


@pytest.mark.parametrize("script", ["print('done')", "import sys; sys.exit()"])
def test_a_script_without_steps(run, script):
    result = run(script)
    assert result.status == "failed"
    assert result.failure.kind in ("no-steps", "exit")
    if result.failure.kind == "no-steps":
        assert "torchdiag.step()" in result.failure.message


def test_a_script_that_is_killed_keeps_what_was_measured(run):
    result = run(STEPS + "    if number == 6: os.kill(os.getpid(), signal.SIGKILL)\n", **COUNTS)
    assert (result.status, result.failure.kind, result.failure.signal) == ("partial", "killed", "SIGKILL")
    assert passes(result) == ["warm-up", "timed"]
    assert len(result.find("timed").step_ns) == 2
    assert result.environment.torch


def test_a_crash_shows_where_python_was(run):
    result = run("import os, signal\ndef crash(): os.kill(os.getpid(), signal.SIGSEGV)\ncrash()\n")
    assert (result.failure.kind, result.failure.signal) == ("killed", "SIGSEGV")
    assert 'script.py", line 2 in crash' in result.failure.output_tail


def test_a_script_that_runs_out_of_memory_keeps_what_was_measured(run):
    script = """
    if number == 6:
        import resource
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28),) * 2)
        torch.empty(1 << 30)
"""
    result = run(STEPS + script, **COUNTS)
    assert (result.status, result.failure.kind) == ("partial", "out-of-memory")
    assert "smaller batch" in result.failure.message
    assert passes(result)[:2] == ["warm-up", "timed"]


def test_a_script_that_ends_too_soon_keeps_what_was_measured(run):
    result = run(STEPS.replace("200", "6"), **{**COUNTS, "steps": 10})
    assert (result.status, result.failure.kind) == ("partial", "few-steps")
    assert "ended after 5 steps" in result.failure.message
    assert len(result.find("timed").step_ns) == 2
    assert result.find("timed").note


def test_an_exception_in_the_middle_of_a_recording_is_told_as_it_is(run):
    result = run(STEPS + "    if number == 6: raise KeyError('mine')\n", **COUNTS)
    assert (result.status, result.failure.message) == ("partial", "The target raised KeyError: 'mine'")
    assert passes(result)[:2] == ["warm-up", "timed"]
    assert result.failure.output_tail.rstrip().endswith("KeyError: 'mine'")


def test_a_script_that_forks_and_prints_a_lot_and_will_not_end(run):
    script = """
    if os.fork() == 0:
        step(); step()
        os._exit(0)
    os.wait()
    print("x" * 200_000)
    if number == 3 and os.fork() == 0:
        time.sleep(1000)
"""
    began = time.monotonic()
    # It catches what is to end it, a few times over.
    stubborn = STEPS.replace("    step()\n", "    try: step()\n    except BaseException: pass\n").replace("200", "30")
    result = run(stubborn + script, **COUNTS)
    assert (result.status, result.failure) == ("complete", None)
    assert passes(result) == ["warm-up", "timed", "light", "detailed", "exceptions"]
    assert Path("out/output.log").stat().st_size > 3_000_000
    assert time.monotonic() - began < 100
    remaining = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    assert str(Path("out").resolve()) not in remaining


def test_a_hang_is_ended_and_located(run):
    script = "import signal, time\n"
    script += "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('now')\ndef wait(): time.sleep(1000)\nwait()\n"
    result = run(script, timeout_s=1.5)
    assert (result.status, result.failure.kind) == ("failed", "timeout")
    assert "Not finished after 1.5 s" in result.failure.message
    assert 'script.py", line 4 in wait' in result.failure.message
    assert result.failure.output_tail == "now"


def test_ctrl_c_keeps_what_was_measured(tmp_path):
    (tmp_path / "script.py").write_text(STEPS + "    if number == 6: print('waiting', flush=True); time.sleep(1000)\n")
    program = f"""
import sys
from pathlib import Path
from torchdiag.capture import parent
from torchdiag.history.profile_options import ProfileOptions
counts = {COUNTS!r}
options = ProfileOptions(target="script.py", target_kind="script", **counts)
result = parent.run(options, Path("out"), on_event=lambda text: print(text, flush=True))
print(result.failure.kind, flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    try:
        while "timed" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert rest.splitlines()[-1] == "interrupted"
    result = read(tmp_path / "out")
    assert (result.status, result.failure.kind) == ("partial", "interrupted")
    assert result.find("timed").step_ns


def test_a_folder_that_cannot_be_written_is_a_mistake(tmp_path):
    (tmp_path / "script.py").write_text("")
    (tmp_path / "file").write_text("")
    options = ProfileOptions(target=str(tmp_path / "script.py"), target_kind="script")
    with pytest.raises(TorchdiagError, match=r"cannot write to .*/file/out"):
        parent.run(options, tmp_path / "file" / "out", on_event=print)


@pytest.fixture
def small_disk(tmp_path, request):
    """A file system of its own: its options are the parameter."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a file system here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("small_disk", ["ro,size=1m"], indirect=True)
def test_a_read_only_folder_is_a_mistake(small_disk, tmp_path):
    (tmp_path / "script.py").write_text("")
    options = ProfileOptions(target=str(tmp_path / "script.py"), target_kind="script")
    with pytest.raises(TorchdiagError, match="Read-only file system; name another with --out"):
        parent.run(options, small_disk / "out", on_event=print)


@pytest.mark.parametrize("small_disk", ["size=256k"], indirect=True)
def test_a_full_disk_is_said_and_what_fits_is_kept(small_disk, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(STEPS.replace("def one(): ", "def one():\n  for _ in range(2000): ") + "    print('y' * 2000)\n")
    options = ProfileOptions(target=str(script), target_kind="script", **COUNTS)
    result = parent.run(options, small_disk, on_event=lambda _: None)
    assert (result.status, result.failure.kind) == ("partial", "disk")
    assert "No space left on device" in result.failure.message
    assert passes(result) == ["warm-up", "timed"]
    assert {path.name for path in small_disk.iterdir()} <= {RESULT, "output.log"}


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (b"a\nb\n\n \n", "a\nb"),
        (b" 10%\r 50%\r100%\nend", "100%\nend"),
        (b"\x1b]0;title\x07 \xe2\x82\xac \xff", "\\x1b]0;title\\x07 \N{EURO SIGN} \\xff"),
        (b"\n".join(b"%d" % n for n in range(50)), "\n".join(str(n) for n in range(30, 50))),
        (b"", ""),
    ],
)
def test_the_last_lines_of_an_output_are_harmless(output, shown):
    assert parent.tail(output) == shown


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (OSError(12, "Cannot allocate memory"), True),
        (OSError(28, "No space left on device"), False),
        (RuntimeError("shapes differ"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_what_running_out_of_memory_looks_like(error, memory):
    assert failures.is_out_of_memory(error) == memory
    assert failures.of_exception(error, "").kind == ("out-of-memory" if memory else "exception")

"""The scanner and the repair keep their laws on texts that nobody thought of, under sanitizers.

The laws are in `native/fuzz/laws.cpp`. The usual budget tries the same texts every time, so that a failure is the
change's doing; set TORCHDIAG_FUZZ_SECONDS to search elsewhere, for as long.
"""

import gzip
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from trace_seeds import WORDS, seeds

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "native"
TRACES = ROOT.parent / "shared" / "traces"
SECONDS = os.environ.get("TORCHDIAG_FUZZ_SECONDS")
BUDGET = [f"-max_total_time={SECONDS}"] if SECONDS else ["-seed=1", "-runs=12000"]
# A process begins with its parent's peak of memory, so that the whole use of memory says nothing here.
MEMORY = ["-rss_limit_mb=0", "-malloc_limit_mb=1024"]
FLAGS = ["-std=c++17", "-O1", "-g", "-pthread", "-fno-sanitize-recover=undefined"]


def compiler() -> str:
    found = next((name for name in ("clang++", "clang++-14") if shutil.which(name)), None)
    if found is None:
        pytest.skip("clang++ is not installed")
    return found


def build(target: Path, *sources: str, sanitizers: str, flags: tuple[str, ...] = ()) -> None:
    files = [NATIVE / "fuzz" / source for source in sources] + sorted(NATIVE.glob("*.cpp"))
    command = [compiler(), *FLAGS, *flags, f"-fsanitize={sanitizers}", *map(str, files), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("replay") / "replay"
    build(target, "replay.cpp", "laws.cpp", sanitizers="address,undefined")
    return target


def check(replay: Path, *files: Path) -> None:
    done = subprocess.run([replay, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_fuzzing_finds_nothing(tmp_path: Path) -> None:
    build(tmp_path / "fuzz", "fuzz_scan.cpp", "laws.cpp", sanitizers="fuzzer,address,undefined")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds()):
        (corpus / str(number)).write_bytes(bytes([3, 5]) + seed)
    quoted = (word.replace('"', '\\"') for word in WORDS)
    (tmp_path / "words").write_text("".join(f'"{word}"\n' for word in quoted))
    limits = [*BUDGET, *MEMORY, "-max_len=2048", "-timeout=30", f"-dict={tmp_path / 'words'}"]
    done = subprocess.run(
        [tmp_path / "fuzz", *limits, f"-artifact_prefix={tmp_path}/", corpus],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_damaged_and_real_traces_pass_the_sanitizers(replay: Path, tmp_path: Path) -> None:
    packed = sorted((TRACES / "malformed").glob("*.json.gz"))
    if not packed:
        pytest.skip("there is no collection of traces beside the project")
    # The smallest ones: sanitizers are slow.
    packed += sorted(TRACES.glob("*/*.json.gz"), key=lambda path: path.stat().st_size)[:40]
    files: list[Path] = []
    for number, path in enumerate(packed):
        data = path.read_bytes()
        try:
            text = gzip.decompress(data)
        except (OSError, EOFError):
            text = data
        files.append(tmp_path / str(number))
        files[-1].write_bytes(text)
    check(replay, *files)


def seed_files(folder: Path) -> list[Path]:
    files = [folder / str(number) for number in range(len(seeds()))]
    for file, seed in zip(files, seeds(), strict=True):
        file.write_bytes(seed)
    return files


def test_seeds_pass_the_sanitizers(replay: Path, tmp_path: Path) -> None:
    check(replay, *seed_files(tmp_path))


def test_seeds_pass_without_vector_instructions(tmp_path: Path) -> None:
    build(tmp_path / "plain", "replay.cpp", "laws.cpp", sanitizers="address,undefined", flags=("-U__SSE2__",))
    folder = tmp_path / "seeds"
    folder.mkdir()
    check(tmp_path / "plain", *seed_files(folder))

"""Names of Python frames: what they say, and whether a person wrote the code they point at."""

import re
import sys
from dataclasses import dataclass, replace

FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>[0-9]{1,9})\): (?P<function>.+)$", re.DOTALL)
LINE = re.compile(r"[0-9]{1,9}")
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
INSTALLED = re.compile(r"^.*(?:site|dist)-packages/")
TORCH_INSIDE = re.compile(r"^(?:torch|functorch|torchgen)/")
RECORDER = re.compile(r"(?:^|/)torchdiag/capture/")
TORCH_ANYWHERE = re.compile(
    r"/torch/(?:_\w+(?:\.py|/)|ao/|amp/|autograd/|backends/|compiler/|cuda/|distributed/|distributions/|export/|fft/|"
    r"func/|futures/|fx/|hub\.py|jit/|library\.py|linalg/|masked/|mps/|multiprocessing/|nested/|nn/|onnx/|optim/|"
    r"overrides\.py|package/|profiler/|quantization/|random\.py|serialization\.py|sparse/|special/|storage\.py|"
    r"testing/|utils/|xpu/|functional\.py)"
)
STANDARD_DIRECTORY = re.compile(r"(?:^|/)(?:lib|lib64)/python\d[\d.]*t?/|/python3\d*/lib/", re.IGNORECASE)
STANDARD_IN_LIB = re.compile(r"/lib/(\w+)(?:\.py$|/)", re.IGNORECASE)
LOADER_FILE = "torch/utils/data/"
DRIVE = re.compile(r"^[A-Za-z]:")

# Kineto cuts the prefixes of `sys.path` off, so that the standard library shows as bare module names. Scripts often
# bear a few of these names themselves, and those modules are never where a training step spends its time.
LIKELY_SCRIPTS = frozenset(
    {"calendar", "cmd", "code", "profile", "site", "statistics", "this", "timeit", "trace", "wave"}
)
GONE_FROM_THE_STANDARD_LIBRARY = frozenset(
    {
        "asynchat",
        "asyncore",
        "cgi",
        "crypt",
        "distutils",
        "imghdr",
        "imp",
        "pipes",
        "sre_compile",
        "sre_parse",
        "telnetlib",
    }
)
STANDARD_LIBRARY = (sys.stdlib_module_names | GONE_FROM_THE_STANDARD_LIBRARY | {"_distutils_hack"}) - LIKELY_SCRIPTS

# Names in angle brackets stand for code without a file; these are code that a person typed.
TYPED_IN = ("<ipython-input", "<stdin>")


@dataclass(frozen=True, slots=True)
class Frame:
    """A Python function: its file as the trace spells it, a line of it, and its name.

    The line of a `python_function` event is the first line of the function; that of a `Call stack` argument, and of
    what a called frame says it was called from, is the line that was running.
    """

    file: str
    line: int
    function: str

    @property
    def label(self) -> str:
        """`train.py:88 step`; a file called `__init__.py` or `__main__.py` keeps its folder."""
        parts = self.file.replace("\\", "/").split("/")
        short = "/".join(parts[-2:]) if parts[-1] in ("__init__.py", "__main__.py") else parts[-1]
        return f"{short}:{self.line} {self.function}"

    def running(self, called_from: str) -> "Frame":
        """This frame at the line of `path/file.py:90`, where a frame it called says it was called from."""
        file, _, line = called_from.rpartition(":")
        return replace(self, line=int(line)) if file == self.file and LINE.fullmatch(line) else self


def parse(name: str) -> Frame | None:
    """The frame that `path/file.py(LINE): function` names; None for built-ins, modules and anything else."""
    found = FRAME.match(name)
    if found is None or name.startswith("<built-in "):
        return None
    return Frame(found["file"], int(found["line"]), found["function"])


def is_user(name: str) -> bool:
    """Whether a frame's name points at code outside torch and the standard library.

    Generated code (`<string>`, `<frozen os>`, FX graphs, Inductor's files) is not a user's either; code of other
    installed packages is.
    """
    frame = parse(name)
    return frame is not None and _is_user_file(frame.file)


def is_user_line(called_from: str) -> bool:
    """Whether `path/file.py:90` points at code outside torch and the standard library."""
    return _is_user_file(called_from.rpartition(":")[0])


def without_address(name: str) -> str:
    """`<built-in method item of Tensor object>` for a name that ends in `at 0x7f..>`."""
    return ADDRESS.sub("", name)


def _is_user_file(file: str) -> bool:
    if file.startswith("<"):
        return file.startswith(TYPED_IN)
    path = file.replace("\\", "/")
    if RECORDER.search(path) is not None:
        return False
    installed = INSTALLED.match(path)
    if installed is not None:
        return TORCH_INSIDE.match(path[installed.end() :]) is None
    if "torchinductor_" in path or STANDARD_DIRECTORY.search(path) is not None:
        return False
    if path.startswith("/") or DRIVE.match(path) is not None:
        in_lib = STANDARD_IN_LIB.search(path)
        in_standard_library = in_lib is not None and in_lib[1] in STANDARD_LIBRARY
        return not in_standard_library and TORCH_ANYWHERE.search(path) is None
    return TORCH_INSIDE.match(path) is None and path.split("/")[0].removesuffix(".py") not in STANDARD_LIBRARY


def innermost_user(names: list[str]) -> Frame | None:
    """The first frame of a person's code among names that are innermost first; None without one."""
    return next((parse(name) for name in names if is_user(name)), None)


def call_stack(text: str) -> list[str]:
    """The frames of the `Call stack` argument of old traces, innermost first.

    They are parted by `;`. Most versions wrote the innermost first, some the outermost: a module's own code can only
    be the outermost, a built-in only the innermost.
    """
    names = [name for name in text.split(";") if name]
    if len(names) > 1 and not names[-1].endswith(": <module>"):
        outermost_first = names[0].endswith(": <module>") or names[-1].startswith("<built-in ")
        return names[::-1] if outermost_first else names
    return names


def inside_loader(names: list[str]) -> list[str]:
    """Of frames that are innermost first, those that a data loader called."""
    loader = [i for i, name in enumerate(names) if LOADER_FILE in name.replace("\\", "/")]
    return names[: loader[0]] if loader else []

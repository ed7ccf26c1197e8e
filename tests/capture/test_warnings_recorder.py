import inspect
import subprocess
import sys
import threading
import warnings

import pytest

from torchdiag.capture.warnings_recorder import WarningsRecorder


def old():
    warnings.warn("old", DeprecationWarning, stacklevel=2)


def test_all_that_are_issued_are_counted_shown_or_not():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        with WarningsRecorder() as recorder:
            for k in (3, 0, 2):
                for _ in range(k):
                    old()
                    warnings.warn("loud", stacklevel=1)
                recorder.step()
    summary = recorder.summary()
    assert [str(warning.message) for warning in seen] == ["old", "loud"]
    assert [step.count for step in summary.steps] == [6, 0, 4]
    line = inspect.getsourcelines(old)[1] + 1
    by_category = {site.category: site for site in summary.sites}
    assert by_category["DeprecationWarning"].issued_at.line == line
    assert by_category["DeprecationWarning"].issued_at.function == "old"
    # "default" shows a warning once for each line that it names.
    assert [(site.count, site.shown) for site in summary.sites] == [(5, 1), (5, 1)]
    assert not summary.interrupted


def test_silenced_ones_are_counted():
    with warnings.catch_warnings(), WarningsRecorder() as recorder:
        warnings.simplefilter("ignore")
        warnings.warn(RuntimeWarning("x"), stacklevel=1)
        warnings.warn_explicit("y", FutureWarning, "somewhere.py", 12)
    sites = {(site.category, site.count, site.shown) for site in recorder.summary().sites}
    assert sites == {("RuntimeWarning", 1, 0), ("FutureWarning", 1, 0)}
    assert {site.issued_at.file for site in recorder.summary().sites} == {__file__, "somewhere.py"}


def test_errors_stay_errors_and_count():
    with warnings.catch_warnings(), WarningsRecorder() as recorder:
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="loud"):
            warnings.warn("loud", stacklevel=1)
    assert [(site.count, site.shown) for site in recorder.summary().sites] == [(1, 0)]


def test_those_of_c_code_are_counted_where_shown():
    with warnings.catch_warnings(), WarningsRecorder() as recorder:
        warnings.simplefilter("always")
        with warnings.catch_warnings(record=True) as seen:
            exec(compile("'\\d'", "text.py", "exec"))
    assert len(seen) == 1
    (site,) = recorder.summary().sites
    assert (site.issued_at.file, site.issued_at.line, site.count, site.shown) == ("text.py", 1, 1, 1)


PROGRAM = """
import sys, warnings
sys.path.insert(0, sys.argv[2])
import library
from torchdiag.capture.warnings_recorder import WarningsRecorder
from contextlib import nullcontext

def deep(level, **more):
    warnings.warn(f"level {{level}}", UserWarning, stacklevel=level, **more)

def outer(level, **more):
    deep(level, **more)

with (WarningsRecorder() if sys.argv[1] == "on" else nullcontext()):
    for level in range(-1, 6):
        outer(level)
        outer(level)
    warnings.warn("message")
    warnings.warn(category=RuntimeWarning, message="by name", stacklevel=1)
    warnings.warn_explicit("explicit", UserWarning, "other.py", 3, "other", {{}})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        outer(2)
        print([(w.filename, w.lineno, str(w.message)) for w in seen])
    if sys.version_info >= (3, 12):
        for level in (1, 2, 3):
            outer(level, skip_file_prefixes=("/nowhere",))
            outer(level, skip_file_prefixes=(__file__,))
            outer(level, skip_file_prefixes=(__file__[:-4],))
            library.outer(outer, level, skip_file_prefixes=(library.__file__[:-4],))
            library.outer(outer, level, skip_file_prefixes=(__file__[:-4],))
    try:
        warnings.warn("bad", category=int)
    except TypeError as error:
        print(type(error).__name__)
    print(sorted((k[0], k[2]) for k in globals().get("__warningregistry__", {{}}) if k != "version"))
"""


def test_the_user_sees_the_same_with_it_as_without(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format())
    (tmp_path / "library.py").write_text("def outer(call, level, **more):\n    call(level, **more)\n")
    told = []
    for mode in ("off", "on"):
        done = subprocess.run([sys.executable, program, mode, tmp_path], capture_output=True, text=True, check=True)
        told.append((done.stdout, done.stderr))
    assert told[0] == told[1]
    assert "level 3" in told[0][1]


def test_threads():
    with warnings.catch_warnings(), WarningsRecorder() as recorder:
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=lambda: [old() for _ in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [site.count for site in recorder.summary().sites] == [400]


def test_a_limit_of_places():
    with warnings.catch_warnings(), WarningsRecorder(max_sites=2) as recorder:
        warnings.simplefilter("ignore")
        for line in (1, 2, 3, 3):
            warnings.warn_explicit("x", UserWarning, "f.py", line)
    summary = recorder.summary()
    assert (len(summary.sites), summary.untracked, summary.steps[0].count) == (2, 2, 4)


def test_everything_is_put_back():
    before = warnings.warn, warnings.warn_explicit, warnings._showwarnmsg
    with WarningsRecorder():
        assert warnings.warn is not before[0]
    assert (warnings.warn, warnings.warn_explicit, warnings._showwarnmsg) == before


def test_somebody_who_wraps_it_keeps_what_they_put_there():
    before = warnings.warn
    recorder = WarningsRecorder()
    try:
        with recorder:
            ours = warnings.warn

            def theirs(*args, **more):
                return ours(*args, **more)

            warnings.warn = theirs
        assert warnings.warn is theirs
        with pytest.warns(UserWarning, match="still shown"):
            warnings.warn("still shown", stacklevel=1)
    finally:
        warnings.warn = before
    assert recorder.summary().interrupted
    assert recorder.summary().sites == ()

import sys
import threading

import pytest

from torchdiag.capture.exceptions import ExceptionRecorder
from torchdiag.errors import TorchdiagError

if sys.version_info >= (3, 12):
    pytest.skip("Python 3.12 and later record through sys.monitoring", allow_module_level=True)


def catch():
    try:
        raise ValueError
    except ValueError:
        pass


def foreign(frame, event, argument):
    return None


@pytest.fixture(autouse=True)
def clean():
    assert sys.gettrace() is None
    yield
    sys.settrace(None)


def test_another_tracer_is_named_and_left_alone():
    sys.settrace(foreign)
    with pytest.raises(TorchdiagError, match="foreign") as caught:
        ExceptionRecorder().start()
    assert "3.12" in str(caught.value)
    assert sys.gettrace() is foreign


def test_two_recorders_at_once_are_refused():
    with ExceptionRecorder() as outer:
        with pytest.raises(TorchdiagError):
            ExceptionRecorder().start()
        catch()
    assert [site.count for site in outer.summary().sites if site.raised_at.function == "catch"] == [1]


def test_everything_is_put_back():
    hook = threading.gettrace()
    frame = sys._getframe()
    before = frame.f_trace, frame.f_trace_lines, frame.f_trace_opcodes
    with ExceptionRecorder():
        assert sys.gettrace() is not None
        assert threading.gettrace() is not hook
    assert sys.gettrace() is None
    assert threading.gettrace() is hook
    assert (frame.f_trace, frame.f_trace_lines, frame.f_trace_opcodes) == before


def test_a_hook_for_new_threads_is_put_back():
    threading.settrace(foreign)
    try:
        with ExceptionRecorder():
            pass
        assert threading.gettrace() is foreign
    finally:
        threading.settrace(None)


def test_a_tracer_that_takes_over_is_told_and_stays():
    with ExceptionRecorder() as recorder:
        catch()
        sys.settrace(foreign)
        catch()
    assert sys.gettrace() is foreign
    summary = recorder.summary()
    assert summary.interrupted
    assert [site.count for site in summary.sites if site.raised_at.function == "catch"] == [1]


def test_threads_stop_being_traced():
    go, done = threading.Event(), threading.Event()
    traced = []

    def called():
        pass

    def work():
        go.wait()
        called()
        called()
        traced.append(sys.gettrace())
        done.set()

    with ExceptionRecorder():
        thread = threading.Thread(target=work)
        thread.start()
    go.set()
    done.wait()
    thread.join()
    assert traced == [None]


def test_frames_that_were_there_before_are_followed():
    recorder = ExceptionRecorder()

    def inner():
        recorder.start()
        raise ValueError

    try:  # noqa: SIM105 - this handler is what is tested
        inner()
    except ValueError:
        pass
    recorder.stop()
    (site,) = recorder.summary().sites
    assert site.raised_at.function.endswith("inner")
    assert site.handled_at.function == "test_frames_that_were_there_before_are_followed"

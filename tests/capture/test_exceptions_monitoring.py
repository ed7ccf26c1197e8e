import sys
import threading

import pytest

from torchdiag.capture.exceptions import ExceptionRecorder
from torchdiag.errors import TorchdiagError

if sys.version_info < (3, 12):
    pytest.skip("sys.monitoring begins with Python 3.12", allow_module_level=True)


@pytest.fixture
def taken():
    """Takes tool numbers in a foreign name, and gives them back."""
    held = []

    def take(*numbers):
        for number in numbers:
            sys.monitoring.use_tool_id(number, f"foreign {number}")
            held.append(number)

    yield take
    for number in held:
        assert sys.monitoring.get_tool(number) == f"foreign {number}"
        sys.monitoring.free_tool_id(number)


def catch():
    try:
        raise ValueError
    except ValueError:
        pass


def tools():
    return [sys.monitoring.get_tool(number) for number in range(6)]


@pytest.mark.parametrize("numbers", [(), (3,), (3, 4), (0, 1, 5)])
def test_another_number_is_taken_and_given_back(taken, numbers):
    taken(*numbers)
    before = tools()
    with ExceptionRecorder() as recorder:
        assert tools().count("torchdiag") == 1
        catch()
    assert recorder.summary().count == 1
    assert tools() == before


def test_when_all_numbers_are_taken_it_says_by_whom(taken):
    taken(2, 3, 4)
    with pytest.raises(TorchdiagError, match="foreign 3"):
        ExceptionRecorder().start()


def test_the_debuggers_number_is_left_alone(taken):
    taken(2, 3, 4)
    with pytest.raises(TorchdiagError):
        ExceptionRecorder().start()
    assert [tools()[number] for number in (0, 1, 5)] == [None, None, None]


def test_two_recorders_at_once():
    with ExceptionRecorder() as outer:
        catch()
        with ExceptionRecorder() as inner:
            catch()
    assert inner.summary().count == 1
    assert outer.summary().count == 2


def test_another_tools_callbacks_go_on(taken):
    taken(3)
    seen = []
    monitoring = sys.monitoring
    monitoring.register_callback(3, monitoring.events.RAISE, lambda code, offset, error: seen.append(type(error)))
    monitoring.set_events(3, monitoring.events.RAISE)
    try:
        with ExceptionRecorder() as recorder:
            catch()
        catch()
        assert monitoring.get_events(3) == monitoring.events.RAISE
    finally:
        monitoring.set_events(3, 0)
        monitoring.register_callback(3, monitoring.events.RAISE, None)
    assert seen.count(ValueError) == 2
    assert recorder.summary().count == 1


def test_beside_a_tracer():
    lines = []

    def tracer(frame, event, argument):
        lines.append(event)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with ExceptionRecorder() as recorder:
            catch()
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert "exception" in lines
    mine = [site for site in recorder.summary().sites if site.raised_at.function == "catch"]
    assert [site.count for site in mine] == [1]


def test_threads_that_run_already_are_seen():
    go, done = threading.Event(), threading.Event()

    def work():
        go.wait()
        catch()
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with ExceptionRecorder() as recorder:
        go.set()
        done.wait()
    thread.join()
    assert [site.count for site in recorder.summary().sites if site.raised_at.function == "catch"] == [1]

"""Facts about exceptions, the same on every Python version."""
# ruff: noqa: SIM105 - the handlers are what is tested

import asyncio
import contextlib
import gc
import inspect
import sys
import threading
import time
import weakref

import pytest

from torchdiag.capture.clock import now_ns
from torchdiag.capture.exception_records import Outcome
from torchdiag.capture.exceptions import ExceptionRecorder


def recorded(function, *args):
    with ExceptionRecorder() as recorder:
        function(*args)
    return recorder.summary()


def told(summary):
    """Count, type, raising function, handling function and outcome of each site."""
    return sorted(
        (
            site.count,
            site.type.rsplit(".", 1)[-1],
            site.raised_at.function.rsplit(".", 1)[-1],
            site.handled_at.function.rsplit(".", 1)[-1] if site.handled_at else None,
            site.outcome.value,
        )
        for site in summary.sites
    )


def line_of(function, text):
    """The line of `function`'s file that holds `text`."""
    lines, first = inspect.getsourcelines(function)
    (found,) = [first + index for index, line in enumerate(lines) if text in line]
    return found


class Suppress:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


class Watch(Suppress):
    def __exit__(self, *error):
        return False


def test_k_exceptions_a_step_are_k_a_step():
    def step(k):
        for index in range(k):
            try:
                raise ValueError(index)  # here
            except ValueError:  # there
                pass

    with ExceptionRecorder() as recorder:
        for k in (3, 0, 5, 1):
            step(k)
            recorder.step()
    summary = recorder.summary()
    assert [each.count for each in summary.steps] == [3, 0, 5, 1]
    assert [each.index for each in summary.steps] == [0, 1, 2, 3]
    (site,) = summary.sites
    assert (site.type, site.count, site.outcome) == ("ValueError", 9, Outcome.HANDLED)
    assert site.raised_at.file == site.handled_at.file == __file__
    assert site.raised_at.line == line_of(step, "# here")
    assert site.handled_at.line == line_of(step, "# there")
    assert site.raised_at.function == "test_k_exceptions_a_step_are_k_a_step.<locals>.step"
    assert len(summary.slices) == 9
    assert [item.step for item in summary.slices] == [0] * 3 + [2] * 5 + [3]
    for before, after in zip(summary.steps, summary.steps[1:], strict=False):
        assert before.end_ns == after.start_ns
    assert summary.count == 9
    assert summary.untracked == summary.dropped_slices == 0
    assert not summary.interrupted


def test_what_follows_the_last_step_is_a_step_of_its_own():
    def catch():
        with Suppress():
            raise KeyError

    with ExceptionRecorder() as recorder:
        recorder.step()
        catch()
    assert [step.count for step in recorder.summary().steps] == [0, 1]


def test_without_steps_all_is_one_step():
    assert [step.count for step in recorded(lambda: None).steps] == [0]


def test_a_clean_loop_shows_none():
    class Countdown:
        def __init__(self):
            self.left = 3

        def __iter__(self):
            return self

        def __next__(self):
            if self.left == 0:
                raise StopIteration
            self.left -= 1
            return self.left

    def numbers():
        yield 1
        return 2

    def delegating():
        yield (yield from numbers())

    async def waits():
        async def values():
            yield 1

        return [value async for value in values()]

    def clean():
        for _ in range(3):
            pass
        list(Countdown())
        for _ in Countdown():
            pass
        list(delegating())
        next(iter(()), None)
        with contextlib.suppress(StopIteration):
            next(iter(()))
        unfinished = numbers()
        next(unfinished)
        unfinished.close()
        next(numbers())
        with contextlib.suppress(StopIteration):
            waits().send(None)
        {}.get("a")
        hasattr(object(), "a")
        getattr(object(), "a", None)
        with contextlib.nullcontext():
            pass

    assert told(recorded(clean)) == []


def test_time_runs_from_raise_to_handler():
    stamps = []

    def slow():
        try:
            try:
                stamps.append(now_ns())
                raise ValueError
            finally:
                time.sleep(0.02)
        except ValueError:
            stamps.append(now_ns())
            time.sleep(0.02)

    summary = recorded(slow)
    (site,), (item,) = summary.sites, summary.slices
    assert stamps[0] <= item.start_ns
    assert item.end_ns <= stamps[1]
    assert 20e6 <= site.total_ns == item.end_ns - item.start_ns
    assert site.min_ns == site.max_ns == site.total_ns


def test_least_and_most_time():
    def nap(seconds):
        try:
            try:
                raise ValueError
            finally:
                time.sleep(seconds)
        except ValueError:
            pass

    with ExceptionRecorder() as recorder:
        nap(0.05)
        nap(0.001)
    (site,) = recorder.summary().sites
    assert site.count == 2
    assert 1e6 <= site.min_ns <= 50e6 <= site.max_ns
    assert site.total_ns == site.min_ns + site.max_ns


def test_many_frames_are_one_exception():
    def deep(levels):
        if levels == 0:
            raise KeyError(levels)
        deep(levels - 1)

    def top():
        try:
            deep(20)
        except KeyError:
            pass

    assert told(recorded(top)) == [(1, "KeyError", "deep", "top", "handled")]


def test_finally_with_and_raise_hand_it_on():
    def inner():
        try:
            raise ValueError
        except KeyError:
            pass
        finally:
            str(1)

    def outer():
        with Watch():
            try:
                inner()
            except ValueError as error:
                str(error)
                raise

    def again():
        try:
            outer()
        except ValueError as error:
            raise error

    def top():
        try:
            again()
        except ValueError:  # the end
            pass

    summary = recorded(top)
    assert told(summary) == [(1, "ValueError", "inner", "top", "handled")]
    assert summary.sites[0].handled_at.line == line_of(top, "# the end")


def test_raise_from_is_a_second_exception():
    def convert():
        try:
            int("x")
        except ValueError as error:
            raise KeyError("k") from error

    def top():
        try:
            convert()
        except KeyError:
            pass

    assert told(recorded(top)) == [
        (1, "KeyError", "convert", "top", "handled"),
        (1, "ValueError", "convert", "convert", "handled"),
    ]


def test_an_outer_handled_exception_raised_inside_an_inner_handler_is_the_same():
    def top():
        try:
            try:
                raise ValueError
            except ValueError as first:
                try:
                    raise KeyError
                except KeyError:
                    raise first  # noqa: B904
        except ValueError:
            pass

    assert told(recorded(top)) == [
        (1, "KeyError", "top", "top", "handled"),
        (1, "ValueError", "top", "top", "handled"),
    ]


def test_one_object_raised_twice_is_two_exceptions():
    error = ValueError()

    def top():
        for _ in range(2):
            try:
                raise error
            except ValueError:
                pass

    assert told(recorded(top)) == [(2, "ValueError", "top", "top", "handled")]


def test_the_clause_that_matches_is_named():
    def top(kind):
        try:
            raise kind
        except (KeyError, TypeError):  # first
            pass
        except (OSError, max([ValueError], key=str)):
            pass

    def simple(kind):
        try:
            raise kind
        except (KeyError, TypeError):  # first
            pass
        except threading.BrokenBarrierError:  # second
            pass
        except ArithmeticError as error:  # third
            str(error)
        except:  # noqa: E722 # last
            pass

    expected = [(KeyError, "first"), (threading.BrokenBarrierError, "second"), (ZeroDivisionError, "third")]
    for kind, mark in [*expected, (TypeError, "first"), (EOFError, "last"), (OverflowError, "third")]:
        (site,) = recorded(simple, kind).sites
        assert site.handled_at.line == line_of(simple, f"# {mark}"), kind
    # Where telling would mean to run the expression, the handler's first line stands for all.
    (site,) = recorded(top, KeyError).sites
    assert site.handled_at.line == line_of(top, "# first")
    (site,) = recorded(top, ValueError).sites
    assert site.handled_at.line == line_of(top, "# first")


def test_clauses_of_local_names():
    def top():
        mine = KeyError
        try:
            raise KeyError
        except ValueError:
            pass
        except mine:  # this
            pass

    assert recorded(top).sites[0].handled_at.line == line_of(top, "# this")


def test_c_code_that_raises():
    def top():
        for text in ("a", "b"):
            try:
                int(text)  # call
            except ValueError:
                pass

    (site,) = recorded(top).sites
    assert (site.count, site.raised_at.line) == (2, line_of(top, "# call"))


def test_c_code_between_frames():
    def fails(value):
        raise ValueError(value)

    def top():
        try:
            list(map(fails, [1]))
        except ValueError:
            pass

    assert told(recorded(top)) == [(1, "ValueError", "fails", "top", "handled")]


class Lazy:
    def __getattr__(self, name):
        raise AttributeError(name)

    @property
    def broken(self):
        raise AttributeError("broken")

    def __getitem__(self, index):
        raise IndexError(index)


def test_c_code_that_swallows():
    def top():
        lazy = Lazy()
        for _ in range(3):
            hasattr(lazy, "x")  # asked
        getattr(lazy, "x", None)
        for _ in lazy:
            pass

    summary = recorded(top)
    assert told(summary) == [
        (1, "AttributeError", "__getattr__", "top", "left-to-c"),
        (1, "IndexError", "__getitem__", "top", "left-to-c"),
        (3, "AttributeError", "__getattr__", "top", "left-to-c"),
    ]
    asked = max(summary.sites, key=lambda site: site.count)
    assert asked.handled_at.line == line_of(top, "# asked")


def test_a_property_whose_error_is_replaced_by_getattr():
    def top():
        try:
            _ = Lazy().broken
        except AttributeError:
            pass

    # The property's error ends in the look-up, which then asks __getattr__; that one's error is the one handled.
    assert told(recorded(top)) == [
        (1, "AttributeError", "__getattr__", "top", "handled"),
        (1, "AttributeError", "broken", "top", "left-to-c"),
    ]


def test_swallowed_then_raised_by_the_same_line_of_code():
    def top():
        lazy = Lazy()
        hasattr(lazy, "x")
        try:
            lazy.x  # noqa: B018
        except AttributeError:
            pass

    assert told(recorded(top)) == [
        (1, "AttributeError", "__getattr__", "top", "handled"),
        (1, "AttributeError", "__getattr__", "top", "left-to-c"),
    ]


def test_a_shared_exception_object_that_c_code_swallows():
    error = AttributeError("shared")

    class Shared:
        def __getattr__(self, name):
            raise error

    def top():
        for _ in range(4):
            hasattr(Shared(), "x")

    assert told(recorded(top)) == [(4, "AttributeError", "__getattr__", "top", "left-to-c")]


def test_with_suppresses():
    def by_class():
        with Suppress():
            raise ValueError

    def by_generator():
        with contextlib.suppress(ValueError):
            raise ValueError

    @contextlib.contextmanager
    def catching():
        try:
            yield
        except ValueError:
            pass

    def by_yield():
        with catching():
            raise ValueError

    assert told(recorded(by_class)) == [(1, "ValueError", "by_class", "by_class", "handled")]
    assert told(recorded(by_generator)) == [(1, "ValueError", "by_generator", "by_generator", "handled")]
    (site,) = recorded(by_yield).sites
    assert (site.count, site.outcome) == (1, Outcome.HANDLED)


def test_a_context_manager_that_passes_it_on():
    @contextlib.contextmanager
    def passing():
        yield

    def top():
        try:
            with passing():
                raise ValueError
        except ValueError:
            pass

    assert told(recorded(top)) == [(1, "ValueError", "top", "top", "handled")]


def test_except_star():
    def whole():
        try:
            raise ExceptionGroup("both", [ValueError(), KeyError()])
        except* ValueError:
            pass
        except* KeyError:
            pass

    def part():
        try:
            raise ExceptionGroup("both", [ValueError(), KeyError()])
        except* ValueError:
            pass

    def rest():
        try:
            part()
        except ExceptionGroup:
            pass

    assert told(recorded(whole)) == [(1, "ExceptionGroup", "whole", "whole", "handled")]
    assert told(recorded(rest)) == [(1, "ExceptionGroup", "part", "rest", "handled")]


def test_finally_that_returns_or_raises_ends_it():
    def returns():
        try:
            raise ValueError
        finally:
            return 1  # noqa: B012

    def raises():
        try:
            try:
                raise ValueError
            finally:
                raise KeyError
        except KeyError:
            pass

    assert told(recorded(returns)) == [(1, "ValueError", "returns", "returns", "handled")]
    assert told(recorded(raises)) == [
        (1, "KeyError", "raises", "raises", "handled"),
        (1, "ValueError", "raises", "raises", "handled"),
    ]


def test_generators_and_coroutines():
    def yields():
        yield 1
        raise ValueError

    def thrown_into():
        try:
            yield 1
        except KeyError:
            yield 2

    async def fails():
        raise OSError

    async def waits():
        try:
            await fails()
        except OSError:
            pass

    def top():
        try:
            list(yields())
        except ValueError:
            pass
        generator = thrown_into()
        next(generator)
        generator.throw(KeyError())
        generator.close()
        with contextlib.suppress(StopIteration):
            waits().send(None)

    assert told(recorded(top)) == [
        (1, "KeyError", "thrown_into", "thrown_into", "handled"),
        (1, "OSError", "fails", "waits", "handled"),
        (1, "ValueError", "yields", "top", "handled"),
    ]


def test_asyncio():
    async def fails(n):
        await asyncio.sleep(0)
        raise ValueError(n)

    async def main():
        for n in range(3):
            try:
                await fails(n)
            except ValueError:
                pass

    with ExceptionRecorder() as recorder:
        asyncio.run(main())
    mine = [site for site in recorder.summary().sites if site.type == "ValueError" and site.raised_at.file == __file__]
    assert [(site.count, site.handled_at.function.rsplit(".", 1)[-1]) for site in mine] == [(3, "main")]


def test_import_error():
    def top():
        for _ in range(2):
            try:
                import a_module_that_is_not_there  # noqa: F401, PLC0415
            except ImportError:
                pass

    summary = recorded(top)
    missing = [site for site in summary.sites if site.type == "ModuleNotFoundError"]
    assert [(site.count, site.handled_at.line) for site in missing] == [(2, line_of(top, "except ImportError"))]


def test_an_exception_that_leaves_the_block_is_unhandled():
    recorder = ExceptionRecorder()
    with pytest.raises(ZeroDivisionError), recorder:
        1 / 0  # noqa: B018
    (site,) = recorder.summary().sites
    assert (site.type, site.handled_at, site.outcome) == ("ZeroDivisionError", None, Outcome.UNHANDLED)


def test_exit_is_recorded_as_what_it_is():
    recorder = ExceptionRecorder()
    with pytest.raises(SystemExit), recorder:
        sys.exit(3)
    assert [(site.type, site.outcome) for site in recorder.summary().sites] == [("SystemExit", Outcome.UNHANDLED)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_other_threads():
    ids = []

    def work(times):
        ids.append(threading.get_native_id())
        for _ in range(times):
            try:
                raise ValueError
            except ValueError:
                pass

    def dies():
        raise KeyError

    def top():
        threads = [threading.Thread(target=work, args=(n,)) for n in (10, 20, 30)]
        threads.append(threading.Thread(target=dies))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    summary = recorded(top)
    assert (60, "ValueError", "work", "work", "handled") in told(summary)
    assert (1, "KeyError", "dies", None, "unhandled") in told(summary)
    slices = [item for item in summary.slices if item.type == "ValueError"]
    assert {item.thread_id for item in slices} == set(ids)


def test_a_thread_a_batch_does_not_pile_up():
    def work():
        try:
            raise ValueError
        except ValueError:
            pass

    with ExceptionRecorder() as recorder:
        for _ in range(300):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        piled = len(recorder._ledger.threads)
    assert piled < 100
    # Making a thread raises exceptions inside `threading` as well, on some versions.
    mine = [site for site in recorder.summary().sites if site.raised_at.file == __file__]
    assert [site.count for site in mine] == [300]


def test_limits_are_kept_and_counted():
    with ExceptionRecorder(max_sites=4, max_slices=10) as recorder:
        for index in range(8):
            exec("\n" * index + "try:\n    raise ValueError\nexcept ValueError:\n    pass")
        recorder.step()
        for _ in range(20):
            with Suppress():
                raise KeyError
    summary = recorder.summary()
    assert len(summary.sites) == 4
    assert summary.untracked == 8 - 4 + 20
    assert summary.count == 28
    assert [step.count for step in summary.steps] == [8, 20]
    assert len(summary.slices) == 4

    with ExceptionRecorder(max_slices=10) as recorder:
        for _ in range(25):
            with Suppress():
                raise KeyError
    summary = recorder.summary()
    assert (len(summary.slices), summary.dropped_slices, summary.count) == (10, 15, 25)


def test_no_exception_is_kept_alive():
    class Big:
        pass

    seen = []

    def top():
        big = Big()
        seen.append(weakref.ref(big))
        try:
            raise ValueError(big)
        except ValueError:
            pass
        hasattr(Lazy(), "x")

    gc.disable()
    try:
        with ExceptionRecorder() as recorder:
            top()
            alive = seen[0]() is not None
    finally:
        gc.enable()
    assert not alive
    assert recorder.summary().count == 2


class Unhashable(type):
    def __hash__(cls):
        raise AssertionError("hashed")

    def __eq__(cls, other):
        raise AssertionError("compared")


def test_no_code_of_the_exception_is_run():
    class Odd(Exception, metaclass=Unhashable):
        def __getattribute__(self, name):
            raise AssertionError(name)

        __hash__ = None

    def inner():
        raise Odd

    def top():
        try:
            inner()
        except (KeyError, Odd):
            pass

    assert told(recorded(top)) == [(1, "Odd", "inner", "top", "handled")]


def test_an_exception_on_its_way_when_the_recording_ends():
    started, go = threading.Event(), threading.Event()

    def work():
        try:
            raise ValueError
        finally:
            started.set()
            go.wait()
            raise KeyError

    def thread():
        with Suppress():
            work()

    worker = threading.Thread(target=thread)
    with ExceptionRecorder() as recorder:
        worker.start()
        started.wait()
    go.set()
    worker.join()
    # Its `finally` has begun: as far as was seen, that is where it ended.
    (item,) = [item for item in recorder.summary().slices if item.raised_at.file == __file__]
    assert (item.type, item.outcome) == ("ValueError", Outcome.HANDLED)


def test_the_recursion_limit():
    def endless():
        endless()

    def top():
        try:
            endless()
        except RecursionError:
            pass

    summary = recorded(top)
    if summary.mechanism == "sys.settrace":
        assert summary.interrupted
    else:
        assert told(summary) == [(1, "RecursionError", "endless", "top", "handled")]


def test_slices_lie_within_their_step_and_match_the_totals():
    with ExceptionRecorder() as recorder:
        for _ in range(5):
            hasattr(Lazy(), "x")
            with Suppress():
                raise KeyError
            recorder.step()
    summary = recorder.summary()
    for item in summary.slices:
        step = summary.steps[item.step]
        assert step.start_ns <= item.start_ns <= item.end_ns <= step.end_ns
    assert sum(item.end_ns - item.start_ns for item in summary.slices) == sum(site.total_ns for site in summary.sites)
    assert summary.slices == tuple(sorted(summary.slices, key=lambda item: item.start_ns))


def test_a_recorder_is_used_once_and_read_after_its_end():
    recorder = ExceptionRecorder()
    with recorder, pytest.raises(RuntimeError, match="stopped"):
        recorder.summary()
    with pytest.raises(RuntimeError, match="once"):
        recorder.start()
    recorder.stop()
    assert recorder.summary().count >= 0


def test_the_cost_is_measured():
    summary = recorded(lambda: None)
    assert 0 < summary.cost.exception_ns < 1e6
    assert summary.cost.call_ns >= 0
    assert summary.mechanism == ("sys.monitoring" if sys.version_info >= (3, 12) else "sys.settrace")

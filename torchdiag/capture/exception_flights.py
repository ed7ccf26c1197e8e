"""Follows every exception from where it is raised to where it ends: one exception, one record.

Both mechanisms (`sys.monitoring`, `sys.settrace`) reduce what they see to four events; this file makes sense of them:

* `raised`: an exception appears in a frame: raised there, or it comes out of a call made there;
* `handled`: control enters a handler of the frame. Every kind of handler: an `except` clause that may not match, a
  `finally`, a `with`; so this is an end only if nothing follows;
* `reraised`: the handler gave it back;
* `unwound`: it leaves the frame. Its caller's `raised` follows, unless the caller is C code that keeps it.

An end is known only by what does not follow it, therefore a flight stays open until a later event of its thread rules
out that it goes on. Exceptions themselves are never held: a reference would keep frames, and with them tensors, alive.
A flight is found again by the exception's identity, and because an identity is reused once the exception is gone, by
its type, its traceback and the frames it passed as well.
"""

import sys
import threading
from _thread import get_ident, get_native_id
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType, TracebackType
from typing import Final, TypeVar

from torchdiag.capture.handler_clause import clause_line
from torchdiag.capture.step_marks import StepMarks


def is_error(kind: type[BaseException]) -> bool:
    """Whether exceptions of this type are recorded: all but how iteration ends and generators close."""
    # By identity: a type may come with a metaclass that runs code of its own when compared or hashed.
    return not (kind is StopIteration or kind is GeneratorExit or kind is StopAsyncIteration)


Key = TypeVar("Key")

RAISED: Final = 0
HANDLED: Final = 1
UNWOUND: Final = 2
ESCAPED: Final = 3

_MOST_OPEN: Final = 16
_MOST_THREADS: Final = 64
_LONGEST_CHAIN: Final = 64
_IMPORTING: Final = "<frozen importlib"

# Through the type's own descriptors, since a subclass may override attribute access and run code of its own.
traceback_of: Final[Callable[[BaseException], TracebackType | None]] = vars(BaseException)["__traceback__"].__get__
_context_of: Final[Callable[[BaseException], BaseException | None]] = vars(BaseException)["__context__"].__get__


class Flight:
    """An exception on its way.

    `state` is RAISED, HANDLED, UNWOUND or ESCAPED; `end_*` say where it was last seen to end, and `end_code` is None
    where it left the outermost frame of its thread. `left_frame` and `caller_frame` are identities of frames,
    `left_code` what the former ran; they are set only in state UNWOUND.
    """

    __slots__ = (
        "caller_frame",
        "end_code",
        "end_ns",
        "end_offset",
        "kind",
        "left_code",
        "left_frame",
        "raise_code",
        "raise_offset",
        "start_ns",
        "state",
        "step",
        "thread_id",
    )
    left_frame: int
    left_code: CodeType
    caller_frame: int

    def __init__(self, kind: type[BaseException], thread_id: int, step: int, code: CodeType, offset: int) -> None:
        self.kind = kind
        self.thread_id = thread_id
        self.step = step
        self.raise_code = code
        self.raise_offset = offset
        self.start_ns = 0
        self.state = RAISED
        self.end_ns = 0
        self.end_code: CodeType | None = None
        self.end_offset = 0


SumKey = tuple[int, int, int, int, int, int, int]
"""Step, id of the type, id and offset of the raising code, id and offset of the ending code, state."""


@dataclass(slots=True, eq=False)
class ThreadFlights:
    """One thread's open flights by identity of the exception, and its sums of closed ones."""

    ident: int
    thread_id: int
    open: dict[int, Flight] = field(default_factory=dict[int, Flight])
    # Count, total, least and most ns, index of the key.
    sums: dict[SumKey, list[int]] = field(default_factory=dict[SumKey, list[int]])
    untracked: dict[int, int] = field(default_factory=dict[int, int])
    dropped_slices: int = 0


class _Local(threading.local):
    thread: ThreadFlights | None = None


class Ledger:
    """Takes the four events from any thread.

    Kept are `max_sites` distinct places, and of `max_slices` single exceptions four numbers each in `slices`: start and
    end (ns), the thread's native id, and the index of its key in `keys`.
    """

    def __init__(self, marks: StepMarks, clock: Callable[[], int], max_sites: int, max_slices: int) -> None:
        self._marks = marks
        self._clock = clock
        self._max_sites = max_sites
        self._max_slices = max_slices
        self._sites: set[tuple[object, ...]] = set()
        self._local = _Local()
        self.threads: list[ThreadFlights] = []
        # Tuples of numbers, which the garbage collector soon lets go of, so that it runs no more often than without.
        self.slices: list[tuple[int, int, int, int]] = []
        self.keys: list[SumKey] = []
        self.codes: dict[int, CodeType] = {}
        self.kinds: dict[int, type[BaseException]] = {}
        self.clauses: dict[tuple[int, int, int], int] = {}

    def _new_thread(self) -> ThreadFlights:
        if len(self.threads) >= _MOST_THREADS:
            self._fold_finished_threads()
        # Sums are per thread, so that no two threads ever add to the same one.
        thread = self._local.thread = ThreadFlights(get_ident(), get_native_id())
        self.threads.append(thread)
        return thread

    def raised(
        self, code: CodeType, offset: int, exc: BaseException, traceback: TracebackType | None, frame: FrameType
    ) -> None:
        """`exc` appeared in `frame`, which runs `code` at byte `offset`; `traceback` is where it has been."""
        kind: type[BaseException] = type(exc)
        if not is_error(kind):
            return
        thread = self._local.thread or self._new_thread()
        flights = thread.open
        if flights:
            identity = id(exc)
            flight = flights.get(identity)
            if flight is not None:
                if flight.kind is kind and _goes_on(flights, flight, exc, traceback, frame):
                    flight.state = RAISED
                    return
                del flights[identity]
                self._close(thread, flight)
            elif _is_group(kind) and _rest_of_group(flights, exc, traceback, frame):
                return
            if flights:
                self._settle(thread, id(frame))
        flight = flights[id(exc)] = Flight(kind, thread.thread_id, self._marks.index, code, offset)
        # Last, so that the time of this method is not counted.
        flight.start_ns = self._clock()

    def reraised(self, code: CodeType, offset: int, exc: BaseException, frame: FrameType) -> None:
        """A handler of `frame` gave `exc` back."""
        kind = type(exc)
        if not is_error(kind):
            return
        if self.given_back(id(exc), kind):
            return
        if _is_group(kind):
            # What `except*` leaves of a group is a new object; to the user it is the same exception.
            thread = self._local.thread or self._new_thread()
            for identity, other in reversed(thread.open.items()):
                if other.state == HANDLED and other.end_code is code and _is_group(other.kind):
                    thread.open[id(exc)] = thread.open.pop(identity)
                    other.kind, other.state = kind, RAISED
                    return
        # Never raised, only given back: what the interpreter made of a StopIteration that left a generator.
        self.raised(code, offset, exc, traceback_of(exc), frame)

    def given_back(self, identity: int, kind: type[BaseException]) -> bool:
        """A handler gave the exception of this `id()` and type back. Returns whether it is one that is followed."""
        thread = self._local.thread
        flight = None if thread is None else thread.open.get(identity)
        if flight is None or flight.kind is not kind:
            return False
        flight.state = RAISED
        return True

    def handled(self, code: CodeType, offset: int, identity: int, kind: type[BaseException], frame: FrameType) -> None:
        """Control entered the handler at `offset` of `code`, for the exception of this `id()` and type."""
        now = self._clock()
        thread = self._local.thread
        flight = None if thread is None else thread.open.get(identity)
        if flight is None or flight.kind is not kind:
            return
        flight.state, flight.end_ns, flight.end_code, flight.end_offset = HANDLED, now, code, offset
        clause = (id(code), offset, id(kind))
        if clause not in self.clauses and len(self.clauses) < self._max_sites:
            self.codes.setdefault(id(code), code)
            self.kinds.setdefault(id(kind), kind)
            self.clauses[clause] = clause_line(frame, offset, kind)

    def unwound(self, identity: int, kind: type[BaseException], frame: FrameType) -> None:
        """The exception of this `id()` and type leaves `frame`."""
        now = self._clock()
        thread = self._local.thread
        flight = None if thread is None else thread.open.get(identity)
        if thread is None or flight is None or flight.kind is not kind:
            return
        flight.state, flight.end_ns = UNWOUND, now
        flight.left_frame, flight.left_code = id(frame), frame.f_code
        caller = frame.f_back
        if caller is None:
            flight.end_code, flight.end_offset, flight.caller_frame = None, 0, 0
            return
        flight.end_code, flight.end_offset, flight.caller_frame = caller.f_code, caller.f_lasti, id(caller)
        # A frame has one call under way: what an earlier call of it left to C is over.
        for other_id, other in list(thread.open.items()):
            if other.state == UNWOUND and other is not flight and other.caller_frame == flight.caller_frame:
                self._close(thread, thread.open.pop(other_id))

    def escaped(self, exc: BaseException) -> None:
        """`exc` leaves the recorded region."""
        thread = self._local.thread
        flight = None if thread is None else thread.open.get(id(exc))
        if flight is not None:
            flight.state, flight.end_code, flight.end_offset = ESCAPED, None, 0

    def close_all(self) -> None:
        """Nothing more will come: every flight ends where it was last seen."""
        now = self._clock()
        for thread in list(self.threads):
            while thread.open:
                _, flight = thread.open.popitem()
                if flight.state == RAISED:
                    flight.end_ns = now
                self._close(thread, flight)

    def _settle(self, thread: ThreadFlights, frame_id: int) -> None:
        """Close what a new exception in a frame shows to be over."""
        flights = thread.open
        active = _being_handled()
        for identity, flight in list(flights.items()):
            if flight.state == HANDLED:
                over = identity not in active
            else:
                over = flight.state == UNWOUND and flight.caller_frame in (frame_id, 0)
            if over:
                self._close(thread, flights.pop(identity))
        while len(flights) >= _MOST_OPEN:
            self._close(thread, flights.pop(next(iter(flights))))

    def _close(self, thread: ThreadFlights, flight: Flight) -> None:
        if flight.state == RAISED and flight.end_ns == 0:
            flight.end_ns = flight.start_ns
        key = (
            flight.step,
            id(flight.kind),
            id(flight.raise_code),
            flight.raise_offset,
            id(flight.end_code),
            flight.end_offset,
            flight.state,
        )
        took = flight.end_ns - flight.start_ns
        sums = thread.sums.get(key)
        if sums is not None:
            sums[0] += 1
            sums[1] += took
            if took < sums[2]:
                sums[2] = took
            elif took > sums[3]:
                sums[3] = took
        elif self._has_room(key, flight):
            sums = thread.sums[key] = [1, took, took, took, len(self.keys)]
            self.keys.append(key)
        else:
            thread.untracked[flight.step] = thread.untracked.get(flight.step, 0) + 1
            return
        if len(self.slices) < self._max_slices:
            self.slices.append((flight.start_ns, flight.end_ns, flight.thread_id, sums[4]))
        else:
            thread.dropped_slices += 1

    def _has_room(self, key: SumKey, flight: Flight) -> bool:
        """Whether the place is known or can still be taken up."""
        place = key[1:]
        if place in self._sites:
            return True
        if len(self._sites) >= self._max_sites:
            return False
        # Held from here on, so that their identities stay their own.
        self.kinds.setdefault(id(flight.kind), flight.kind)
        self.codes.setdefault(id(flight.raise_code), flight.raise_code)
        if flight.end_code is not None:
            self.codes.setdefault(id(flight.end_code), flight.end_code)
        self._sites.add(place)
        return True

    def _fold_finished_threads(self) -> None:
        """Add up what finished threads left, so that a program that makes a thread a batch does not pile them up."""
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        # An identity is reused: only the latest thread that had it can be alive, and that is not the one now beginning.
        latest = {thread.ident: thread for thread in self.threads}
        alive = {id(thread) for ident, thread in latest.items() if ident in frames and ident != get_ident()}
        kept: list[ThreadFlights] = []
        folded: ThreadFlights | None = None
        for thread in self.threads:
            if id(thread) in alive:
                kept.append(thread)
                continue
            while thread.open:
                self._close(thread, thread.open.popitem()[1])
            if folded is None:
                folded = thread
            else:
                _fold(folded, thread)
        self.threads = kept if folded is None else [folded, *kept]


def _fold(into: ThreadFlights, other: ThreadFlights) -> None:
    for key, sums in other.sums.items():
        merge(into.sums, key, sums)
    for step, count in other.untracked.items():
        into.untracked[step] = into.untracked.get(step, 0) + count
    into.dropped_slices += other.dropped_slices


def merge(into: dict[Key, list[int]], key: Key, sums: list[int]) -> None:
    """Add count, total, least and most to those of `key`."""
    known = into.get(key)
    if known is None:
        into[key] = list(sums)
    else:
        known[:4] = known[0] + sums[0], known[1] + sums[1], min(known[2], sums[2]), max(known[3], sums[3])


def _goes_on(
    flights: dict[int, Flight],
    flight: Flight,
    exc: BaseException,
    traceback: TracebackType | None,
    frame: FrameType,
) -> bool:
    """Whether `exc`, seen in `frame`, is still on the way that `flight` follows, and not raised anew."""
    passed = None if traceback is None else traceback.tb_next
    if flight.state == HANDLED:
        active = sys.exception()
        if active is None:
            return False
        if id(exc) in _being_handled():
            return True
        # `raise error` inside a handler of a later error turns their chain round: the later one is now the context.
        later = flights.get(id(active))
        is_turned = passed is not None and _context_of(exc) is active
        return is_turned and later is not None and later.start_ns > flight.start_ns
    if flight.state == UNWOUND and flight.caller_frame != id(frame):
        return False
    if flight.state == RAISED:
        return passed is not None
    while passed is not None and id(passed.tb_frame) != flight.left_frame:
        passed = passed.tb_next
    # `import` takes the importing machinery's own frames out of the traceback.
    return passed is not None or flight.left_code.co_filename.startswith(_IMPORTING)


def _is_group(kind: type[BaseException]) -> bool:
    return issubclass(kind, BaseExceptionGroup)


def _rest_of_group(
    flights: dict[int, Flight], exc: BaseException, traceback: TracebackType | None, frame: FrameType
) -> bool:
    """Whether `exc` is what an `except*` below `frame` left of a group that is followed; if so it is followed on."""
    for identity, flight in list(flights.items()):
        is_group = flight.state == UNWOUND and _is_group(flight.kind)
        if is_group and _goes_on(flights, flight, exc, traceback, frame):
            flights[id(exc)] = flights.pop(identity)
            flight.kind, flight.state = type(exc), RAISED
            return True
    return False


def _being_handled() -> set[int]:
    """Identities of the exceptions whose handlers the thread is in, innermost first."""
    chain: set[int] = set()
    exc = sys.exception()
    while exc is not None and id(exc) not in chain and len(chain) < _LONGEST_CHAIN:
        chain.add(id(exc))
        exc = _context_of(exc)
    return chain

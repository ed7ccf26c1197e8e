"""Which `except` clause of a handler takes an exception, read from the handler's bytecode.

The interpreter reports where the handlers of a `try` begin, which is the line of its first `except` clause. A `try`
with several clauses deserves the line of the one that matched.
"""

import dis
from types import CodeType, FrameType, ModuleType
from typing import Final, cast

_NOTHING: Final = object()
_JUMPS: Final = frozenset({"POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE"})
_SILENT: Final = frozenset({"EXTENDED_ARG", "CACHE", "NOT_TAKEN", "PUSH_NULL"})
_MOST_CLAUSES: Final = 64


def line_at(code: CodeType, offset: int) -> int:
    """Line of the instruction at byte `offset`; where it has none, of the first later one that has; 0 if none has."""
    for _, end, line in code.co_lines():
        if end > offset and line is not None:
            return line
    return 0


def clause_line(frame: FrameType, offset: int, kind: type[BaseException]) -> int:
    """Line of the clause that takes an exception of type `kind`, in the handler at byte `offset` of `frame`'s code.

    Clauses are tried in order as the interpreter will: names are looked up in the frame without running any code of
    the program. Where a clause's expression is more than names, attributes of modules and classes, and tuples of
    them, it cannot be told which clause matches, and the handler's first line is returned. That is also the answer for
    a `finally`, a `with`, an `except*`, and where no clause matches.
    """
    code = frame.f_code
    instructions = list(dis.get_instructions(code))
    index_of = {instruction.offset: index for index, instruction in enumerate(instructions)}
    handler = index_of.get(offset)
    found: int | None = None
    if handler is not None and instructions[handler].opname == "PUSH_EXC_INFO":
        found = _matching_clause(instructions, index_of, handler + 1, frame, kind)
    return line_at(code, offset if found is None else found)


def _matching_clause(
    instructions: list[dis.Instruction], index_of: dict[int, int], at: int, frame: FrameType, kind: type[BaseException]
) -> int | None:
    """Offset of the first clause from index `at` on that takes `kind`; None if there is none or it cannot be told."""
    for _ in range(_MOST_CLAUSES):
        clause = instructions[at].offset
        stack: list[object] = []
        while instructions[at].opname != "CHECK_EXC_MATCH":
            if instructions[at].opname == "POP_TOP" and not stack:
                return clause
            if not _evaluate(instructions[at], frame, stack):
                return None
            at += 1
        at += 1
        while instructions[at].opname in _SILENT:
            at += 1
        matches = _matches(kind, stack[0]) if len(stack) == 1 else None
        if matches is None or instructions[at].opname not in _JUMPS:
            return None
        if matches:
            return clause
        at = index_of[cast(int, instructions[at].argval)]
    return None


def _evaluate(instruction: dis.Instruction, frame: FrameType, stack: list[object]) -> bool:
    """Carry out one instruction of a clause's expression on `stack`; False if that would need more than look-ups."""
    name = instruction.opname
    value: object = _NOTHING
    if name in _SILENT:
        return True
    if name in ("LOAD_GLOBAL", "LOAD_NAME"):
        value = frame.f_globals.get(instruction.argval, frame.f_builtins.get(instruction.argval, _NOTHING))
        if name == "LOAD_NAME" and frame.f_locals is not frame.f_globals:
            value = frame.f_locals.get(instruction.argval, value)
    elif name in ("LOAD_FAST", "LOAD_DEREF", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"):
        value = frame.f_locals.get(instruction.argval, _NOTHING)
    elif name == "LOAD_ATTR" and stack:
        value = _attribute(stack.pop(), instruction.argval)
    elif name == "BUILD_TUPLE" and 0 < (instruction.arg or 0) <= len(stack):
        size = cast(int, instruction.arg)
        value = tuple(stack[-size:])
        del stack[-size:]
    if value is _NOTHING:
        return False
    stack.append(value)
    return True


def _attribute(owner: object, name: str) -> object:
    """The attribute of a module or class as its own dictionary has it; anything else could run code."""
    if isinstance(owner, ModuleType):
        return vars(owner).get(name, _NOTHING)
    if type(owner) is type:
        return next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), _NOTHING)
    return _NOTHING


def _matches(kind: type[BaseException], caught: object) -> bool | None:
    """Whether `except caught` takes `kind`; None if `caught` is no exception class or tuple of them."""
    members = cast(tuple[object, ...], caught) if isinstance(caught, tuple) else (caught,)
    matched = False
    for member in members:
        if isinstance(member, tuple):
            inner = _matches(kind, cast(object, member))
            if inner is None:
                return None
            matched = matched or inner
        elif isinstance(member, type) and issubclass(member, BaseException):
            # As the interpreter does it: by the bases themselves, never by code of their metaclass.
            matched = matched or any(base is member for base in kind.__mro__)
        else:
            return None
    return matched

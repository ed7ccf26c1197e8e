"""Programs made at random, against what the language says happens to each exception of theirs."""

from dataclasses import dataclass, field

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from torchdiag.capture.exceptions import ExceptionRecorder

KINDS = ("ValueError", "KeyError", "OSError")

leaves = st.one_of(
    st.just(("pass",)),
    st.tuples(st.just("raise"), st.sampled_from(KINDS)),
    st.tuples(st.just("c"), st.sampled_from(KINDS)),
    st.tuples(st.just("ask"), st.just("AttributeError")),
    st.just(("loop",)),
)


def compounds(children):
    block = st.lists(children, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.tuples(st.just("call"), block),
        st.tuples(st.just("generator"), block),
        st.tuples(st.just("except"), block, st.sampled_from(KINDS), block, st.booleans()),
        st.tuples(st.just("finally"), block, block),
        st.tuples(st.just("with"), block, st.booleans()),
        st.tuples(st.just("again"), block),
    )


programs = st.recursive(leaves, compounds, max_leaves=12).map(lambda node: (node,))


@dataclass
class Writer:
    """Writes a program's source, and plays it: `ends` collects each exception's type, raise line and outcome."""

    lines: list[str] = field(default_factory=list)

    def write(self, block, indent):
        return [self.statement(node, indent) for node in block]

    def put(self, indent, text):
        self.lines.append("    " * indent + text)
        return len(self.lines)

    def statement(self, node, indent):
        """Writes one statement; returns it with the lines it got."""
        kind = node[0]
        if kind == "pass":
            return ("pass", self.put(indent, "pass"))
        if kind == "raise":
            return ("raise", self.put(indent, f"raise {node[1]}"), node[1])
        if kind == "c":
            return ("raise", self.put(indent, f"list(map(thrower, [{node[1]}]))"), node[1], "thrower")
        if kind == "ask":
            return ("ask", self.put(indent, "hasattr(lazy, 'x')"))
        if kind == "loop":
            return ("pass", self.put(indent, "for _ in (n for n in [1, 2]): pass"))
        if kind in ("call", "generator"):
            name = f"f{len(self.lines)}"
            self.put(indent, f"def {name}():")
            body = self.write(node[1], indent + 1)
            if kind == "generator":
                self.put(indent + 1, "yield")
                self.put(indent, f"list({name}())")
            else:
                self.put(indent, f"{name}()")
            return ("block", body)
        if kind == "except":
            self.put(indent, "try:")
            body = self.write(node[1], indent + 1)
            handler = self.put(indent, f"except {node[2]}" + (" as error:" if node[4] else ":"))
            return ("except", body, node[2], handler, self.write(node[3], indent + 1))
        if kind == "again":
            self.put(indent, "try:")
            body = self.write(node[1], indent + 1)
            self.put(indent, "except Exception:")
            self.put(indent + 1, "raise")
            return ("block", body)
        if kind == "finally":
            self.put(indent, "try:")
            body = self.write(node[1], indent + 1)
            self.put(indent, "finally:")
            return ("finally", body, self.write(node[2], indent + 1), len(self.lines))
        if kind == "with":
            line = self.put(indent, f"with {'quiet' if node[2] else 'watch'}:")
            return ("with", self.write(node[1], indent + 1), node[2], line)
        raise AssertionError(kind)


def play(block, ends):
    """Run a written block by the language's rules. Returns the exception that leaves it: (type, raise line) or None."""
    for node in block:
        error = step(node, ends)
        if error is not None:
            return error
    return None


def step(node, ends):
    kind = node[0]
    if kind == "raise":
        return (node[2], "thrower" if len(node) > 3 else node[1])
    if kind == "ask":
        ends.append(("AttributeError", "__getattr__", node[1], "left-to-c"))
    elif kind == "block":
        return play(node[1], ends)
    elif kind == "except":
        error = play(node[1], ends)
        if error is not None and error[0] == node[2]:
            ends.append((*error, node[3], "handled"))
            return play(node[4], ends)
        return error
    elif kind == "finally":
        error = play(node[1], ends)
        later = play(node[2], ends)
        if later is not None and error is not None:
            ends.append((*error, "finally", "handled"))
        return later if later is not None else error
    elif kind == "with":
        error = play(node[1], ends)
        if error is not None and node[2]:
            ends.append((*error, node[3], "handled"))
            return None
        return error
    return None


PRELUDE = """
class Manager:
    def __init__(self, suppresses): self.suppresses = suppresses
    def __enter__(self): return self
    def __exit__(self, *error): return self.suppresses
class Lazy:
    def __getattr__(self, name): raise AttributeError(name)
def thrower(kind): raise kind
quiet, watch, lazy = Manager(True), Manager(False), Lazy()
"""


# Hypothesis explains failures with a tracer of its own, which Python 3.11 cannot have beside the recorder's.
@settings(phases=set(Phase) - {Phase.explain})
@given(programs)
def test_every_exception_of_a_program_is_one_record_with_its_end(program):
    writer = Writer()
    writer.put(0, "def main():")
    body = writer.write(program, 1)
    expected = []
    left = play(body, expected)
    if left is not None:
        expected.append((*left, None, "unhandled"))

    names = {}
    exec(compile(PRELUDE, "prelude", "exec"), names)
    exec(compile("\n".join(writer.lines), "program", "exec"), names)
    recorder = ExceptionRecorder()
    try:
        with recorder:
            names["main"]()
    except Exception as error:
        assert left is not None and type(error).__name__ == left[0]
    else:
        assert left is None

    def mark(site):
        return site.line if site.file == "program" else site.function.rsplit(".", 1)[-1]

    found = [
        (item.type, mark(item.raised_at), mark(item.handled_at) if item.handled_at else None, item.outcome.value)
        for item in recorder.summary().slices
    ]
    # Where a `finally` raises over an exception, which of its lines that is does not matter.
    finals = {end[:2] for end in expected if end[2] == "finally"}
    plain = [item if item[:2] not in finals else (*item[:2], "-", item[3]) for item in found]
    wanted = [item if item[:2] not in finals else (*item[:2], "-", item[3]) for item in expected]
    assert sorted(plain, key=str) == sorted(wanted, key=str), "\n".join(writer.lines)
    assert recorder.summary().count == len(expected)

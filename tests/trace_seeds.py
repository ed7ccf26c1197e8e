"""Small traces for the fuzzer to start from: one of each shape and each kind of damage."""

EVENT = (
    '{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1695835542515.301, "dur": 104.5, '
    '"args": {"External id": 2, "stream": 7, "correlation": 3, "blocks per SM": 1.5, "grid": [1, 2, 3]}}'
)
FLOW = '{"ph": "s", "id": 5, "pid": 1, "tid": "main", "ts": 2, "cat": "ac2g", "name": "ac2g"}'
META = '{"name": "process_name", "ph": "M", "ts": 0, "pid": 1, "tid": 0, "args": {"name": "python"}}'


def seeds() -> list[bytes]:
    """Texts of at most a few hundred bytes."""
    pair = f"{EVENT}, {FLOW}"
    texts = [
        f'{{"schemaVersion": 1, "traceEvents": [{EVENT}, {FLOW}, {META}], "traceName": "a"}}',
        f"[{pair}]",
        f'\ufeff\r\n{{"traceEvents":\r\n[\r\n{pair}\r\n]\r\n}}\r\n',
        '{"traceEvents": []}',
        '{"traceEvents": null}',
        "{}",
        f'{{"traceEvents": [{pair}]}}\n{{"traceEvents": [{META}]}}',
        f'{{"traceEvents": [{EVENT}, {EVENT[:60]}',
        f'{{"traceEvents": [{pair}',
        f'{{"traceEvents": [{pair},]}}',
        f'{{"traceEvents": [{EVENT} {FLOW}]}}',
        f'{{"traceEvents": [{EVENT}, garbage {FLOW}, {META}]}}',
        f'{{ {{"id": 1}}, {{"id": 2}} ], "traceEvents": [{pair}]}}',
        f'{{"traceEvents": [{EVENT[:-1]}, {FLOW}, {META}]}}',
        f'{{"x": NaN, "traceEvents": [{pair}], "y": [1, 2,], "z": "C:\\Users"}}',
        EVENT + "\n" + FLOW,
    ]
    damages = [
        ('"gemm"', r'"C:\Users\new"'),
        ('"gemm"', '"{"device": "cpu"}(12): empty"'),
        ('"gemm"', '"{"a": "cpu", "b": 1}(12): empty"'),
        ('"gemm"', '"a\n\x01b"'),
        ('"gemm"', '"\\u00e9\\ud83d\\ude00\\ud800"'),
        ('"gemm"', '"gemm'),
        ("1.5", "N/A"),
        ("1.5", "-Infinity"),
        ("1.5", '"1.5"'),
        ("104.5", '"104.5"'),
        ("104.5", "1e-3"),
        ('"tid"', "tid"),
        ('"tid"', 'tid"'),
        (', "tid"', ' "tid"'),
        ("[1, 2, 3]", "[1, 2, 3,]"),
        ("[1, 2, 3]", "[" * 600 + "]" * 600),
        ('"stream": 7', '"stream": 99999999999999999999, "stream": "0x10"'),
        ('"ph": "X"', '"ph": "s"t::detail'),
        ("}}", "}"),
    ]
    texts += [f'{{"traceEvents": [{EVENT.replace(old, new)}, {FLOW}]}}' for old, new in damages]
    broken_encoding = texts[0].encode().replace(b"gemm", b"ge\xff\xe2\x82mm")
    return [text.encode("utf-8", "surrogatepass") for text in texts] + [broken_encoding, b"\0\0" + texts[0].encode()]


WORDS = (
    '"ph"', '"X"', '"cat"', '"name"', '"pid"', '"tid"', '"ts"', '"dur"', '"args"', '"id"', '"traceEvents"', "[{", "}]",
    "},{", '":', "null", "NaN", "N/A", "\\\\u", "\\\\ud800", "\\xEF\\xBB\\xBF", '"External id"', '"grid"', "1e9", "0x",
)  # fmt: skip
"""Pieces of traces for the fuzzer to put together, in the escapes of its dictionary."""

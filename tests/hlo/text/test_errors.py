"""Malformed text: which code, which place, and what the message says."""

from __future__ import annotations

import tracemalloc

import pytest

from heron.errors import HeronError, Span
from heron.hlo.text import parse

HEAD = "HloModule m\n"


def entry(*lines: str) -> str:
    return HEAD + "ENTRY e {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


X = "x = f32[2]{0} parameter(0)"
CASES = {
    # name: (text, code, line, underlined, part of the message)
    "empty": ("", "TXT002", 1, "", "expected 'HloModule'"),
    "no-header": ("PROGRAM e\n}", "TXT002", 1, "PROGRAM", "expected 'HloModule'"),
    "no-computation": (HEAD, "TXT002", 1, "", "expected a computation"),
    "empty-computation": (HEAD + "ENTRY e { }", "TXT015", 2, "{ }", "has no instructions"),
    "cut-off": (entry(X)[:-2], "TXT002", 3, "", "the text ends here"),
    "open-string": (entry(X, 'y = f32[2] custom-call(x), custom_call_target="foo'), "TXT001", 4, '"', "closing quote"),
    "unknown-op": (entry(X, "y = f32[2] negat(x)"), "HLO003", 4, "negat", "did you mean 'negate'?"),
    "unknown-type": (entry("x = g32[2] parameter(0)"), "HLO001", 3, "g32[2]", "unknown element type 'g32'"),
    "unknown-operand": (entry("xyz = f32[2] parameter(0)", "y = f32[2] negate(xy)"), "TXT007", 4, "xy", "mean 'xyz'?"),
    "later-operand": (
        entry(X, "y = f32[2] negate(z)", "z = f32[2] negate(x)"),
        "TXT007",
        4,
        "z",
        "it is defined below",
    ),
    "operand-shape": (entry(X, "y = f32[2] negate(f32[3] x)"), "TXT007", 4, "x", "its shape is f32[2]"),
    "unknown-attribute": (
        entry(X, "y = f32[3,2] broadcast(x), dimension={1}"),
        "TXT004",
        4,
        "dimension",
        "did you mean 'dimensions'?",
    ),
    "missing-attribute": (
        entry(X, "y = f32[3,2] broadcast(x)"),
        "TXT005",
        4,
        "y = f32[3,2] broadcast(x)",
        "needs the attribute 'dimensions'",
    ),
    "attribute-twice": (
        entry(X, "y = f32[3,2] broadcast(x), dimensions={1}, dimensions={1}"),
        "TXT006",
        4,
        "dimensions",
        "given twice",
    ),
    "bad-choice": (
        entry(X, "y = pred[2] compare(x, x), direction=GTE"),
        "TXT004",
        4,
        "GTE",
        "EQ, NE, GE, GT, LE, LT",
    ),
    "bad-ints": (entry(X, "y = f32[3,2] broadcast(x), dimensions=1"), "TXT002", 4, "1", "integers in braces"),
    "huge-int": (
        entry(X, "y = f32[2,2] broadcast(x), dimensions={99999999999999999999}"),
        "TXT010",
        4,
        "{99999999999999999999}",
        "64-bit",
    ),
    "duplicate-name": (entry(X, X), "TXT006", 4, "x", "'x' is defined twice"),
    "duplicate-computation": (
        HEAD + "c { ROOT a = f32[] parameter(0) }\nc { ROOT a = f32[] parameter(0) }",
        "TXT006",
        3,
        "c",
        "'c' is defined twice",
    ),
    "operand-count": (entry(X, "y = f32[2] add(x)"), "HLO004", 4, "add(x)", "add takes 2 operands, 1 given"),
    "unknown-computation": (
        entry(X, "y = f32[2] call(x), to_apply=g"),
        "TXT008",
        4,
        "g",
        "unknown computation 'g'",
    ),
    "later-computation": (
        entry(X, "y = f32[2] call(x), to_apply=g") + "g { ROOT a = f32[2] parameter(0) }",
        "TXT008",
        4,
        "g",
        "precede their callers",
    ),
    "two-entries": (
        HEAD + "ENTRY a { ROOT x = f32[] parameter(0) }\nENTRY b { ROOT x = f32[] parameter(0) }",
        "TXT009",
        3,
        "ENTRY",
        "a second ENTRY",
    ),
    "two-roots": (entry("ROOT " + X, "ROOT y = f32[2] negate(x)"), "TXT009", 4, "ROOT", "a second ROOT"),
    "signature": (
        HEAD + "ENTRY e (x: f32[2]) -> f32[3] {\n  ROOT x = f32[2] parameter(0)\n}",
        "TXT015",
        2,
        "e",
        "the root is f32[2]",
    ),
    "elided": (entry("c = f32[20] constant({...})"), "TXT011", 3, "constant({...})", "elided_as_zero"),
    "too-few": (entry("c = f32[3] constant({1, 2})"), "TXT011", 3, "constant({1, 2})", "2 elements instead of 3"),
    "braces": (entry("c = f32[2,1] constant({1, 2})"), "TXT011", 3, "constant({1, 2})", "braces"),
    "no-number": (entry("c = f32[2] constant({1, a})"), "TXT011", 3, "constant({1, a})", "'a' is not a number"),
    "int-range": (entry("c = s8[] constant(128)"), "TXT010", 3, "constant(128)", "s8 holds -128 to 127"),
    "float-range": (entry("c = f32[] constant(1e39)"), "TXT010", 3, "constant(1e39)", "out of range"),
    "bool": (entry("c = pred[] constant(2.5)"), "TXT011", 3, "constant(2.5)", "write true or false"),
    "layout": (entry("x = f32[2,3]{1,1} parameter(0)"), "TXT013", 3, "f32[2,3]{1,1}", "each of the 2 dimensions"),
    "huge-shape": (
        entry("x = f32[4294967296,4294967296] parameter(0)"),
        "TXT013",
        3,
        "f32[4294967296,4294967296]",
        "too large",
    ),
    "huge-strides": (
        entry("c = f32[0,9000000000,9000000000] constant({  })"),
        "TXT013",
        3,
        "f32[0,9000000000,9000000000]",
        "too large",
    ),
    "huge-dimension": (
        entry(f"x = f32[{'9' * 5000}] parameter(0)"),
        "TXT013",
        3,
        None,
        "is not a dimension",
    ),
    "left-out-sizes": (
        entry("x = f32[?,3] parameter(0)", "y = broadcast(x), dimensions={1,2}"),
        "TXT019",
        4,
        "y = broadcast(x), dimensions={1,2}",
        "must be given",
    ),
    "constant-of-any-size": (entry("c = f32[?] constant({1})"), "TXT011", 3, "constant({1})", "needs its sizes"),
    "deep": (entry("x = " + "(" * 5000), "TXT012", 3, None, "nested too deeply"),
    "deep-inline": (
        entry(X, "y = f32[2] call(x), to_apply=" + "{ a = f32[2] call(), to_apply=" * 500),
        "TXT012",
        4,
        None,
        "nested",
    ),
    "deep-literal": (entry("c = f32[] constant(" + "(" * 500), "TXT012", 3, None, "nested"),
    "metadata": (entry(X[:-1] + "), metadata={op_name=3}"), "TXT002", 3, "3", "a string"),
    "metadata-field": (
        entry(X + ', metadata={opname="x"}'),
        "TXT004",
        3,
        "opname",
        "did you mean 'op_name'?",
    ),
    "window": (
        HEAD
        + "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
        + "ENTRY e { x = f32[4] parameter(0)\n z = f32[] constant(0)\n"
        + " y = f32[3] reduce-window(x, z), window={size=2 stride=1x1}, to_apply=add }",
        "TXT004",
        7,
        "{",
        "differ in rank",
    ),
    "dim-labels": (
        entry("x = f32[1,4,1] parameter(0)", "y = f32[1,4,1] convolution(x, x), dim_labels=b0f_0ii->b0f"),
        "TXT004",
        4,
        "b0f_0ii->b0f",
        "'0ii' must name each of io",
    ),
    "no-shape": (
        entry(X, "y = broadcast(x), dimensions={0}"),
        "HLO010",
        4,
        "y = broadcast(x), dimensions={0}",
        "shape",
    ),
    "inferred": (
        entry(X, "s = f32[3] parameter(1)", "y = add(x, s)"),
        "HLO010",
        5,
        "y = add(x, s)",
        "add",
    ),
    "comment": (HEAD + "/* ENTRY e {", "TXT001", 2, "/* ENTRY e {", "a comment without its end"),
    "module-field": (
        "HloModule m, is_schedule=true",
        "TXT004",
        1,
        "is_schedule",
        "did you mean 'is_scheduled'?",
    ),
    "type": (entry("x = bf61[2] parameter(0)"), "HLO001", 3, "bf61[2]", "did you mean 'bf16'?"),
    "scalar-layout": (entry("x = f32[]{} parameter(0)"), "TXT013", 3, "f32[]{}", "leave the {} out"),
    "layout-field": (entry("x = f32[2]{0:S(1)T(8)} parameter(0)"), "TXT013", 3, None, "D T L # * E S SC M"),
    "levels": (entry("x = f32[2]{0:D(D,C)} parameter(0)"), "TXT013", 3, None, "one level for each of 1"),
    "sharding": (entry(X + ", sharding={devices=[2]0}"), "HLO027", 3, "{devices=[2]0}", "2 tiles and 1 devices"),
    "groups": (
        entry(X, "y = f32[2] all-gather(x), replica_groups={0,1}, dimensions={0}"),
        "TXT017",
        4,
        "{0,1}",
        "{{0,1},{2,3}}",
    ),
    "accuracy": (
        entry(X, "y = f32[2] exponential(x), result_accuracy={mode=high}"),
        "TXT017",
        4,
        "{mode=high}",
        "default or highest",
    ),
    "no-accuracy": (
        entry(X, "y = f32[2] negate(x), result_accuracy={mode=highest}"),
        "TXT004",
        4,
        "result_accuracy",
        "no attribute",
    ),
    "origin": (entry(X + ', origin={"x"}'), "TXT017", 3, '{"x"}', "expected '{'"),
    "statistics": (entry(X + ", statistics={a}"), "TXT017", 3, "{a}", "name=2.5"),
    "statistics without end": (
        entry(X + ", statistics={visualizing_index=1e999}"),
        "TXT017",
        3,
        "{visualizing_index=1e999}",
        "1e999",
    ),
    "domain": (entry(X, "y = f32[2] domain(x), domain={}"), "TXT017", 4, "{}", "this is not a domain"),
    "replication": (
        entry(X + ", parameter_replication={true,false}"),
        "TXT004",
        3,
        X + ", parameter_replication={true,false}",
        "2 flags for 1 buffers",
    ),
    "window-interior": (
        HEAD
        + "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
        + "ENTRY e { x = f32[4] parameter(0)\n z = f32[] constant(0)\n"
        + " y = f32[3] reduce-window(x, z), window={size=2 pad=0_0_1}, to_apply=add }",
        "TXT004",
        7,
        "0_0_1",
        "no interior padding",
    ),
    "nested-attribute": (
        entry(X, "y = f32[3,2] negate(f32[3,2] broadcast(x), dimensions={1})"),
        "TXT005",
        4,
        None,
        "broadcast needs the attribute 'dimensions'",
    ),
    "wrong-done": (
        entry(X, "s = ((f32[2]), f32[2], u32[]) negate-start(x)", "d = f32[2] abs-done(s)"),
        "TXT016",
        5,
        "abs-done",
        "that runs negate",
    ),
    "wrong-thread": (
        entry(
            X, "s = ((f32[2]), f32[2], u32[]) negate-start(x)", 'd = f32[2] negate-done(s), async_execution_thread="t"'
        ),
        "TXT016",
        5,
        "async_execution_thread",
        "s has main",
    ),
    "done-of-nothing": (entry(X, "d = f32[2] negate-done(x)"), "TXT016", 4, "x", "it is parameter"),
    "true-by-index": (
        entry(
            "p = s32[] parameter(0)",
            "y = s32[] conditional(p, p, p), true_computation={ a = s32[] parameter(0) }, "
            "false_computation={ a = s32[] parameter(0) }",
        ),
        "TXT004",
        4,
        "true_computation",
        "branch_computations={A, B}",
    ),
    "two-instructions": (
        "a = f32[2] negate(f32[2] x)\nb = f32[2] negate(f32[2] a)",
        "TXT002",
        2,
        "b",
        "belong into a computation",
    ),
    "operand-without-shape": ("a = f32[2] negate(x)", "TXT007", 1, "x", "needs its shape"),
    "payload": (entry("c = f8e4m3fn[] constant(nan(0x1))"), "TXT010", 3, "constant(nan(0x1))", "one NaN only"),
    "bare-point": (entry("c = f32[] constant(.5)"), "TXT011", 3, "constant(.5)", "'.5' is not a number"),
    "rank": (
        entry("c = f32[" + "1," * 70 + "1] constant({...})"),
        "TXT011",
        3,
        None,
        "left out when the text was printed",
    ),
    "literal-rank": (
        entry("c = f32[" + "1," * 70 + "1] constant(" + "{" * 71 + "1" + "}" * 71 + ")"),
        "TXT011",
        3,
        None,
        "the limit is 64",
    ),
    "nul": (entry("x = f32[2] \x00"), "TXT002", 3, "\x00", "expected an op"),
}


@pytest.mark.parametrize("name", CASES)
def test_error(name: str) -> None:
    text, code, line, underlined, message = CASES[name]
    with pytest.raises(HeronError) as caught:
        parse(text, "file.hlo")
    error = caught.value
    assert error.code == code, error
    assert message in str(error)
    assert isinstance(error.where, Span)
    assert (error.where.filename, error.where.line) == ("file.hlo", line), error
    if underlined is not None:
        begin = error.where.column - 1
        length = error.where.length if underlined else 0
        assert error.where.text[begin : begin + length] == underlined


N = 5_000
#: texts that ask for depth, length or memory: an error, soon
HUGE = {
    "tuple-shape": entry("x = " + "(" * N + "f32[]" + ")" * N + " parameter(0)"),
    "tuple-shape-of-many": entry("x = " + "((f32[], " * N),
    "literal": entry("x = ((f32[])) constant(" + "(" * N + "1" + ")" * N + ")"),
    "array-literal": entry("x = f32[1,1] constant(" + "{" * N + "1" + "}" * N + ")"),
    "open-constants": entry("x = f32[] " + "constant(" * N),
    "operands": entry("x = f32[] " + "add(f32[] " * N + "constant(0)" + ", f32[] constant(0))" * N),
    "alone": "f32[] " + "add(f32[] " * N + "constant(0)" + ", f32[] constant(0))" * N,
    "bodies": entry(X, "y = f32[2] call(x), to_apply=" + "{ a = f32[2] call(), to_apply=" * N),
    "sharding": entry(X + ", sharding=" + "{" * N + "}" * N),
    "sharding-apart": entry(X + ", sharding=" + "{ " * N + "}" * N),
    "origin": entry(X + ", origin={" + "( " * N + '{"a"}' + ")" * N + "}"),
    "elements": entry("x = f32[99999999999] constant({1})"),
    "rows": entry("x = f32[99999999999,0] constant({})"),
    "rank": entry("x = f32[" + "1," * N + "1] parameter(0)"),
    "tiles": entry("x = f32[2]{0:T" + "(2)" * N + "x} parameter(0)"),
    "numbers": entry("x = f32[2] constant({" + "1," * N * 10 + "1})"),
    "integer": entry(X, "y = f32[2] iota(), iota_dimension=" + "9" * N * 10),
    "integers": entry(X, "y = f32[2] reverse(x), dimensions={" + "9" * N * 10 + "}"),
    "float": entry("x = f32[] constant(" + "9" * N * 10 + ")"),
    "junk": entry("x = " + "$" * N * 50),
    "string": entry('x = f32[] parameter(0), backend_config="' + "a" * N * 50),
    "backslashes": entry('x = f32[] parameter(0), backend_config="' + "\\" * (N * 50 + 1)),
    "operation": entry("x = f32[2] " + "a" * N * 50 + "(x)"),
    "type": entry("x = " + "q" * N * 50 + "[2] parameter(0)"),
    "attribute": entry(X, "y = f32[2] negate(x), " + "a" * N * 50 + "=3"),
    "operand": entry(X, "y = f32[2] negate(" + "a" * N * 50 + ")"),
    "names": entry(*(f"x{n} = f32[2] parameter({n})" for n in range(N)), "y = f32[2] negate(zz)"),
    "comments": HEAD + "/*" * N * 10,
    "quotes": HEAD + '"' * (N * 10 + 1),
    "slashes": HEAD + "/" * N * 10,
    "groups": entry(X, "y = f32[2] all-gather(x), dimensions={0}, replica_groups=" + "{{0,1}," * N),
    "tile-devices": entry(X + ", sharding={devices=[99999999999]<=[99999999999]}"),
    "alias": "HloModule m, input_output_alias={ " + "{}: (0, {}), " * N,
    "entry-layout": "HloModule m, entry_computation_layout={" + "(" * N,
    "literal-attribute": entry('y = f32[] custom-call(), custom_call_target="f", literal=' + "( " * N),
    "surrogates": entry("\ud800 = f32[2] parameter(0)"),
    "itself": HEAD + "a { x = f32[2] parameter(0)\n y = f32[2] call(x), to_apply=a }",
    "before-itself": entry(X, "y = f32[2] negate(x), control-predecessors={y}"),
}


@pytest.mark.parametrize("name", HUGE)
def test_too_much(name: str) -> None:
    """Bounded in depth and memory, and told in a short message."""
    tracemalloc.start()
    try:
        with pytest.raises(HeronError) as caught:
            parse(HUGE[name])
        assert tracemalloc.get_traced_memory()[1] < 50e6 + 200 * len(HUGE[name])
    finally:
        tracemalloc.stop()
    assert isinstance(caught.value.where, Span)
    assert len(str(caught.value)) < 1200


def test_rendered() -> None:
    with pytest.raises(HeronError) as caught:
        parse(entry(X, "y = f32[2]{0} negat(x)"), "file.hlo")
    assert str(caught.value) == (
        "error[HLO003]: unknown op 'negat'\n"
        "  at file.hlo:4:17\n"
        "      y = f32[2]{0} negat(x)\n"
        "                    ^^^^^\n"
        "  try: did you mean 'negate'?"
    )


def test_verifier_findings_are_underlined() -> None:
    text = entry(X, "y = f32[3]{0} negate(x)")
    parse(text)  # well-formed
    with pytest.raises(HeronError) as caught:
        parse(text, "file.hlo", verify=True)
    assert caught.value.code == "HLO108"
    where = caught.value.where
    assert isinstance(where, Span)
    assert (where.line, where.text[where.column - 1 :]) == (4, "y = f32[3]{0} negate(x)")
    assert "negate gives f32[2]" in str(caught.value)

"""Texts for traces: computations that are alike are printed by a template, and as without one."""

from __future__ import annotations

import pytest

from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.text.record import record

BODIES = {
    "elementwise": "p{n} = f32[4]{{0}} parameter(0) a{n}.1 = f32[4]{{0}} add(p{n}, p{n}) ROOT m{n} = f32[4]{{0}} multiply(a{n}.1, p{n})",
    "calls": "p{n} = f32[4]{{0}} parameter(0) z{n} = f32[] constant(0) r{n} = f32[] reduce(p{n}, z{n}), dimensions={{0}}, to_apply=sum{n}"
    " ROOT b{n} = f32[4]{{0}} broadcast(r{n}), dimensions={{}}",
    "names of computations": "sum{n} = f32[4]{{0}} parameter(0) z = f32[] constant(0) r{n} = f32[] reduce(sum{n}, z), dimensions={{0}}, to_apply=sum{n}"
    " ROOT fused{n} = f32[4]{{0}} broadcast(r{n}), dimensions={{}}",
    "unused": "p{n} = f32[4]{{0}} parameter(0) q{n} = f32[] constant(3) ROOT m{n} = f32[4]{{0}} negate(p{n})",
    "percent": "p{n} = f32[4]{{0}} parameter(0) ROOT c{n} = f32[4]{{0}} custom-call(p{n}), custom_call_target=\"%a %s %p{n} %m0\"",
    "annotated": 'p{n} = f32[4]{{0}} parameter(0) ROOT m{n} = f32[4]{{0}} negate(p{n}), metadata={{op_name="%p0 {n} %s"}}, backend_config={{"n":"{n}"}}',
    "one annotated": "p{n} = f32[4]{{0}} parameter(0) a{n} = f32[4]{{0}} abs(p{n}) ROOT m{n} = f32[4]{{0}} negate(a{n}), control-predecessors={{p{n}}}",
    "accurate": "p{n} = f32[4]{{0}} parameter(0) ROOT m{n} = f32[4]{{0}} exponential(p{n}), result_accuracy={{tolerance={{atol=1,rtol=0,ulps=0}}}}",
}  # fmt: skip


def program(body: str, copies: int) -> Module:
    lines = ["HloModule m", ""]
    for n in range(copies):
        lines.append(
            f"sum{n} {{ x{n} = f32[] parameter(0) y{n} = f32[] parameter(1) ROOT s{n} = f32[] add(x{n}, y{n}) }}"
        )
        lines.append(f"fused{n} {{ {body.format(n=n)} }}")
    calls = [f"f{n} = f32[4]{{0}} fusion(x), kind=kLoop, calls=fused{n}" for n in range(copies)]
    results = ", ".join(f"f{n}" for n in range(copies))
    lines += ["ENTRY e {", "x = f32[4]{0} parameter(0)", *calls, f"ROOT t = tuple({results})", "}"]
    return parse("\n".join(lines))


@pytest.mark.parametrize("copies", [2, 3, 5])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_alike(body: str, copies: int) -> None:
    module = program(body, copies)
    alike = {c: fingerprint(c) for c in module.computations if c is not module.entry}
    assert record(module, alike) == record(module)
    assert record(parse(record(module))) == record(module)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_order_of_text(order: tuple[str, str]) -> None:
    """Instructions that stand in another order, or lead to no result, are printed in their own."""
    lines = {"a": "a{n} = f32[4]{{0}} abs(p{n})", "b": "b{n} = f32[4]{{0}} negate(p{n})"}
    begin, end = "p{n} = f32[4]{{0}} parameter(0) ", " ROOT m{n} = f32[4]{{0}} add(a{n}, b{n})"
    module = program(begin + lines[order[0]] + " " + lines[order[1]] + end, 3)
    other = program(begin + lines[order[1]] + " " + lines[order[0]] + end, 3)
    key = fingerprint(module.computations[1])
    for m in (module, other):
        assert record(m, {c: key for c in m.computations if c.name.startswith("fused")}) == record(m)

from __future__ import annotations

import pytest

from heron.buffers import assign
from heron.hlo.text import parse
from heron.passes.framework.context import PassContext
from heron.passes.schedule.memory_scheduler import MemoryScheduler
from tests.buffers.compiled import run_passes

WIDE = "f32[1024]{0}"


def branches(count: int) -> str:
    """Sums of large arrays: held at once when all are made first, one at a time when each is reduced at once."""
    made = "\n".join(
        f"  b{n} = {WIDE} sine(x)\n  r{n} = f32[] reduce(b{n}, zero), dimensions={{0}}, to_apply=plus"
        for n in range(count)
    )
    sums = "\n".join(
        f"  {'ROOT ' if n == count - 1 else ''}s{n} = f32[] add({'r0' if n == 1 else f's{n - 1}'}, r{n})"
        for n in range(1, count)
    )
    return f"""HloModule m

plus {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY main {{
  x = {WIDE} parameter(0)
  zero = f32[] constant(0)
{made}
{sums}
}}
"""


@pytest.mark.parametrize("order", ["", "dfs", "list"])
def test_large_values_do_not_pile_up(order: str) -> None:
    module = parse(branches(8))
    run_passes(module, ["copy-insertion"])
    MemoryScheduler(order).run(module, PassContext())
    assert assign(module).temp_bytes < 2 * 4096 + 1024


def test_control_edges_hold() -> None:
    module = parse(branches(4))
    at = {i.name: i for i in module.entry.instructions}
    at["b0"].add_control_predecessor(at["r3"])
    MemoryScheduler().run(module, PassContext())
    assert module.schedule is not None
    order = [i.name for i in module.schedule[module.entry]]
    assert order.index("r3") < order.index("b0") and order[-1] == "s3"


def test_what_frees_memory_runs_as_soon_as_it_can() -> None:
    text = """HloModule m

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[1024]{0} parameter(0)
  zero = f32[] constant(0)
  big = f32[1024]{0} sine(x)
  other = f32[1024]{0} reverse(big), dimensions={0}
  more = f32[1024]{0} reverse(other), dimensions={0}
  last = f32[1024]{0} sine(more)
  loss = f32[] reduce(big, zero), dimensions={0}, to_apply=plus
  ROOT t = (f32[1024]{0}, f32[]) tuple(last, loss)
}
"""
    module = parse(text)
    run_passes(module)
    assert module.schedule is not None
    order = [i.name for i in module.schedule[module.entry]]
    assert order.index("loss") < order.index("more")


def test_every_candidate_is_told() -> None:
    module = parse(branches(4))
    ctx = PassContext()
    ctx.run_pass(MemoryScheduler(), module)
    reasons = [d.reason for d in ctx.trace.decisions]
    assert len(reasons) == 1 and all(n in reasons[0] for n in ("dfs", "list", "post-order"))


_TWO_OUTPUTS = """HloModule outputs

ENTRY e {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  v = f32[64] parameter(2)
  a = f32[64,64] negate(x)
  b = f32[64,64] exponential(y)
  p = f32[64] dot(v, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  r = f32[64] exponential(p)
  q = f32[64] dot(r, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = (f32[64], f32[64,64], f32[64,64]) tuple(q, a, b)
}
"""


@pytest.mark.parametrize(("cache", "late"), [(0, False), (1 << 14, True), (1 << 20, False)])
def test_what_lives_on_is_made_when_it_is_needed(cache: int, late: bool) -> None:
    module = parse(_TWO_OUTPUTS)
    MemoryScheduler(cache=cache).run(module, PassContext())
    assert module.schedule is not None
    names = [i.name for i in module.schedule[module.entry]]
    assert (names.index("p") < names.index("b")) == late
    assert names.index("a") < names.index("p")


def test_values_that_the_output_cannot_hold_are_stored_at_once() -> None:
    """Eight rows of an output, each a product with an array that is made of the one before.

    Kept until the end, the rows would take less than the output's memory, which is free until then; but they are read
    when the output is there, and the arrays are too large for it. An array and a row at a time are needed.
    """
    steps = "\n".join(
        f"""  a{n} = f32[8,96] {"tanh" if n % 2 else "exponential"}({f"a{n - 1}" if n else "x"})
  d{n} = f32[8,8] dot(a{n}, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  at{n} = s32[] constant({8 * n})
  {"ROOT " if n == 7 else ""}o{n} = f32[64,8] dynamic-update-slice({f"o{n - 1}" if n else "empty"}, d{n}, at{n}, zero)"""
        for n in range(8)
    )
    module = parse(f"""HloModule m
ENTRY e {{
  x = f32[8,96] parameter(0)
  y = f32[96,8] parameter(1)
  zero = s32[] constant(0)
  f = f32[] constant(0)
  empty = f32[64,8] broadcast(f), dimensions={{}}
{steps}
}}""")
    run_passes(module, ["copy-insertion"])
    ctx = PassContext()
    MemoryScheduler().run(module, ctx)
    assert assign(module).temp_bytes == 3072 + 256
    (decision,) = ctx.trace.decisions
    assert "in another order 3328 B of scratch memory instead of" in decision.reason

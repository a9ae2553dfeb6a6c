"""Undoing fusion, schedules and control edges; looking without touching; scheduling and aliasing the simple way."""

from __future__ import annotations

import pytest

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import parse, print_module
from heron.hlo.verifier import VerifierOptions, verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext
from tests.passes.control_flow.programs import program


def run(module: Module, *names: str, **options: object) -> PassContext:
    ctx = PassContext(Options(check="values"))
    for name in names:
        ctx.run_pass(registry.get(name, **options), module)
    verify(module, VerifierOptions(scheduled=module.is_scheduled))
    return ctx


def compiled(seed: int) -> Module:
    """A program after the whole pipeline of the CPU: fused, scheduled, with copies."""
    module = program(seed)
    PassContext().run_pass(registry.pipeline("cpu"), module)
    return module


@pytest.mark.parametrize("seed", range(8))
def test_compiled_programs_despecialize(seed: int) -> None:
    original = program(seed)
    module = compiled(seed)
    assert module.is_scheduled
    values = ValueCheck(original)
    run(module, "despecializer")
    assert not module.is_scheduled
    assert not any(i.opcode == "fusion" or i.control_predecessors for i in module.instructions())
    values.after("despecializer", module)
    assert not registry.get("despecializer").run(module, PassContext())
    PassContext(Options(check="values")).run_pass(registry.pipeline("cpu"), module)  # compiles again
    values.after("cpu", module)


@pytest.mark.parametrize("seed", range(20))
def test_schedulers(seed: int) -> None:
    module = program(seed)
    run(module, "trivial-scheduler", "root-instruction-sinker")
    assert module.schedule is not None
    assert all(order[-1] is c.root for c, order in module.schedule.items())
    for name in ("trivial-scheduler", "root-instruction-sinker"):
        assert not registry.get(name).run(module, PassContext())
    assert parse(print_module(module)).is_scheduled


def test_a_fusion_within_a_fusion_opens_too() -> None:
    module = parse("""HloModule m
inner { p = f32[2] parameter(0) ROOT e = f32[2] exponential(p) }
outer { p = f32[2] parameter(0) f = f32[2] fusion(p), kind=kLoop, calls=inner ROOT n = f32[2] negate(f) }
ENTRY e { x = f32[2] parameter(0) ROOT r = f32[2] fusion(x), kind=kLoop, calls=outer }""")
    run(module, "defuser")
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "exponential", "negate"]
    assert len(module.computations) == 1


def test_calls_of_a_computation_with_a_fusion_get_bodies_of_their_own() -> None:
    module = parse("""HloModule m
body { p = f32[2] parameter(0) ROOT e = f32[2] exponential(p) }
twice { p = f32[2] parameter(0) ROOT f = f32[2] fusion(p), kind=kLoop, calls=body }
ENTRY e { x = f32[2] parameter(0) a = f32[2] call(x), to_apply=twice ROOT b = f32[2] call(a), to_apply=twice }""")
    run(module, "call-inliner")
    assert len({i.attrs["calls"] for i in module.entry.instructions if i.opcode == "fusion"}) == 2


def test_tuple_roots_sink() -> None:
    module = parse("""HloModule m, is_scheduled=true
ENTRY e { x = f32[2] parameter(0) ROOT t = (f32[2], f32[2]) tuple(x, x)
  a = f32[2] get-tuple-element(t), index=0 n = f32[2] negate(a) }""")
    run(module, "root-instruction-sinker")
    assert module.entry.root.opcode == "tuple" and module.entry.root is not module.entry.instructions[1]


def test_the_verifier_raises() -> None:
    module = parse("HloModule m\nENTRY e { x = f32[2] parameter(0) ROOT n = f32[2] negate(x) }")
    module.entry.root.shape = module.entry.root.shape.with_dims((3,))
    with pytest.raises(HeronError, match="HLO108"):
        registry.get("verifier").run(module, PassContext())


def test_the_verifier_knows_schedules() -> None:
    module = parse("HloModule m\nENTRY e { x = f32[2] parameter(0) ROOT n = f32[2] negate(x) }")
    module.schedule = {module.entry: module.entry.instructions[::-1]}
    with pytest.raises(HeronError, match="HLO110"):
        registry.get("verifier").run(module, PassContext())


GATHERS = """HloModule m
ENTRY e {
  x = f32[8,3] parameter(0)
  k = s32[5] parameter(1)
  j = s32[2,4] parameter(2)
  a = f32[5,3] gather(x, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={1,3}
  n = f32[5,3] negate(a)
  b = f32[2,4,3] gather(n, j), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2,
    slice_sizes={1,3}
  two = f32[] constant(2)
  twos = f32[2,4,3] broadcast(two), dimensions={}
  m = f32[2,4,3] multiply(b, twos)
  partial = f32[5,2] gather(x, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={1,2}
  t = f32[3,3] constant({{1,2,3},{4,5,6},{7,8,9}})
  c = f32[3,5] gather(t, k), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1,
    slice_sizes={3,1}
  ROOT r = (f32[2,4,3], f32[5,2], f32[3,5]) tuple(m, partial, c)
}"""


def test_indexed_arrays() -> None:
    ctx = run(parse(GATHERS), "indexed-array-analysis")
    assert sorted(ctx.trace.notes) == [
        "%a = (scalar-indexed %x %k 0->[0])",
        "%b = (scalar-indexed (negate %x) (scalar-indexed %k %j 0->[0,1]) 0->[0,1])",
        "%c = (scalar-indexed (constant f32[3,3]) %k 1->[1])",
        "%m = (scalar-indexed (multiply (negate %x)) (scalar-indexed %k %j 0->[0,1]) 0->[0,1])",
        "%n = (scalar-indexed (negate %x) %k 0->[0])",
    ]


# -- aliases ---------------------------------------------------------------------------------------------------------
ALIASES = """HloModule m{}
ENTRY e {{
  x = f32[4] parameter(0)
  y = (f32[4], s32[4]) parameter(1)
  a = f32[4] get-tuple-element(y), index=0
  s = f32[4] add(x, a)
  n = f32[4] negate(s)
  ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(s, x, n, x)
}}"""


def test_parameters_handed_through() -> None:
    module = parse(ALIASES.format(""))
    run(module, "alias-passthrough-params")
    assert [tuple(a) for a in module.input_output_aliases] == [((1,), 0, (), "may-alias")]


def test_what_is_aliased_already_stays() -> None:
    module = parse(ALIASES.format(", input_output_alias={ {0}: (0, {}, must-alias) }"))
    assert not registry.get("alias-passthrough-params").run(module, PassContext())


@pytest.mark.parametrize(
    ("header", "donors_only", "aliases"),
    [
        ("", True, []),
        (", buffer_donor={ (1, {1}) }", True, [((0,), 1, (1,))]),
        (", buffer_donor={ (1, {0}), (0, {}) }", True, [((0,), 0, ()), ((1,), 1, (0,))]),
        ("", False, [((0,), 0, ()), ((1,), 1, (0,)), ((2,), 1, (1,))]),
        (", input_output_alias={ {2}: (0, {}, may-alias) }", False, [((2,), 0, ()), ((0,), 1, (0,)), ((1,), 1, (1,))]),
    ],
)
def test_donors(header: str, donors_only: bool, aliases: list[object]) -> None:
    module = parse(ALIASES.format(header))
    run(module, "optimize-input-output-buffer-alias", donors_only=donors_only)
    assert [tuple(a)[:3] for a in module.input_output_aliases] == aliases
    assert len(module.buffer_donors) == 0

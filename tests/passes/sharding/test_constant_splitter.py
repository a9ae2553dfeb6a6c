"""The pass constant-splitter."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.sharding.constant_splitter import ConstantSplitter
from heron.passes.simplify.cse import Cse


def _split(text: str):
    module = parse(f"HloModule m, num_partitions=2\n\n{text}")
    changed = ConstantSplitter().run(module, PassContext())
    verify(module)
    assert not ConstantSplitter().run(module, PassContext())
    return module, changed


def test_expressions_are_copied_as_a_whole_and_scalars_shared():
    module, changed = _split("""ENTRY e {
      x = f32[4,8] parameter(0)
      one = f32[] constant(1)
      ones = f32[4,8] broadcast(one), dimensions={}
      i = f32[8] iota(), iota_dimension=0
      n = f32[8] negate(i)
      m = f32[4,8] broadcast(n), dimensions={1}
      s = f32[4,8] add(ones, m)
      a = f32[4,8] multiply(x, s)
      b = f32[4,8] multiply(a, s)
      ROOT r = f32[4,8] subtract(b, ones)
    }""")
    opcodes = [i.opcode for i in module.entry.instructions]
    assert changed
    assert opcodes.count("iota") == opcodes.count("add") == 2 and opcodes.count("constant") == 1
    assert opcodes.count("broadcast") == 5  # two in each expression, and that of the scalar


def test_each_operand_has_its_own():
    module, changed = _split("""ENTRY e {
      c = f32[2,2] constant({{1,2},{3,4}})
      ROOT d = f32[2,2] dot(c, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }""")
    left, right = module.entry.root.operands
    assert changed and left is not right and left.literal is right.literal


def test_a_broadcast_of_a_scalar_that_is_computed():
    module, changed = _split("""ENTRY e {
      s = f32[] parameter(0)
      x = f32[8] parameter(1)
      t = f32[] negate(s)
      b = f32[8] broadcast(t), dimensions={}
      y = f32[8] add(x, b)
      ROOT r = f32[8] multiply(y, b)
    }""")
    assert changed and len(module.entry.instructions) == 7


def test_what_varies_stays():
    _, changed = _split("""ENTRY e {
      p = u32[] partition-id()
      b = u32[8] broadcast(p), dimensions={}
      x = u32[8] parameter(0)
      i = u32[8] negate(x)
      y = u32[8] add(x, i)
      z = u32[8] add(y, i)
      ROOT r = u32[8] multiply(z, b)
    }""")
    assert not changed


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(["add", "multiply"]), st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_common_subexpressions_undo_it(ops: list[tuple[str, int, int]]):
    """Splitting and merging again gives the program that merging alone gives."""
    lines = ["v0 = s32[4] parameter(0)", "v1 = s32[4] iota(), iota_dimension=0", "v2 = s32[4] constant({1,2,3,4})"]
    for n, (opcode, a, b) in enumerate(ops, 3):
        lines.append(f"v{n} = s32[4] {opcode}(v{a % n}, v{b % n})")
    lines[-1] = "ROOT " + lines[-1]
    module, _ = _split("ENTRY e {\n" + "\n".join(lines) + "\n}")
    merged = parse("HloModule m, num_partitions=2\n\nENTRY e {\n" + "\n".join(lines) + "\n}")
    for m in (module, merged):
        Cse().run(m, PassContext())
    assert module.instruction_count() == merged.instruction_count()

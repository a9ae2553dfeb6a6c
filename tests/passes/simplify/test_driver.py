"""How the algebraic simplifier runs its rules: what it leaves alone, in which mode, and what it takes back."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.passes.rewriting.driver import rewrite
from heron.passes.rewriting.rules import Builder, Rule, rule, table

PRODUCT = """HloModule m

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  one = f32[] constant(1)
  ones = f32[4,8]{LAYOUT} broadcast(one), dimensions={}
  first = f32[4,8]{LAYOUT} negate(x)
  ROOT r = f32[4,8]{LAYOUT} multiply(x, ones)EDGE
}
"""


def _simplified(text: str, **options: bool) -> tuple[Module, PassContext]:
    module, ctx = parse(text), PassContext(Options())
    ctx.run_pass(get("algebraic-simplifier", **options), module)
    return module, ctx


def test_control_edges_hold_things_in_place() -> None:
    text = PRODUCT.replace("LAYOUT", "1,0")
    assert _simplified(text.replace("EDGE", ""))[0].entry.root.opcode == "parameter"
    assert _simplified(text.replace("EDGE", ", control-predecessors={first}"))[0].entry.root.opcode == "multiply"


def test_layouts_are_kept_where_they_count() -> None:
    text = PRODUCT.replace("LAYOUT", "0,1").replace("EDGE", "")
    assert _simplified(text)[0].entry.root.opcode == "parameter"
    module, _ = _simplified(text, is_layout_sensitive=True)
    # x lies otherwise than the product, so it cannot stand for it
    assert module.entry.root.opcode == "multiply"


def test_dynamic_dimensions_are_left_alone() -> None:
    text = PRODUCT.replace("LAYOUT", "1,0").replace("EDGE", "").replace("[4,8]", "[<=4,8]")
    module, ctx = _simplified(text)
    assert module.entry.root.opcode == "multiply" and not ctx.rules


def test_what_has_effects_is_replaced_not_doubled() -> None:
    module, _ = _simplified(
        """HloModule m

yes {
  t = token[] parameter(0)
  ROOT c = token[] custom-call(t), custom_call_target="say_yes", custom_call_has_side_effect=true
}

no {
  t = token[] parameter(0)
  ROOT c = token[] custom-call(t), custom_call_target="say_no", custom_call_has_side_effect=true
}

ENTRY main {
  p = pred[] parameter(0)
  t = token[] parameter(1)
  n = s32[] convert(p)
  ROOT c = token[] conditional(n, t, t), branch_computations={no, yes}
}
"""
    )
    (conditional,) = [i for i in module.entry.instructions if i.opcode == "conditional"]
    assert [o.opcode for o in conditional.operands] == ["parameter"] * 3


def test_fired_rules_are_in_the_trace() -> None:
    _, ctx = _simplified(PRODUCT.replace("LAYOUT", "1,0").replace("EDGE", ""))
    (record,) = ctx.trace.passes
    (rule,) = record.rules
    assert rule.startswith("multiply_one multiply.py:") and record.rules[rule] == 1


def test_an_op_of_many_operands_is_tried_once() -> None:
    """However many operands a rule is for, and however many of them have changed."""
    rules: list[Rule] = []
    tried: list[str] = []

    @rule("concatenate", operand="slice", home=rules)
    def noted(i: Instruction, b: Builder) -> Instruction | None:
        tried.append(i.name)
        return None

    @rule("slice", home=rules)
    def whole(i: Instruction, b: Builder) -> Instruction | None:
        return i.operands[0] if i.shape is i.operands[0].shape else None

    lines = "".join(
        f"a{n} = f32[2] slice(x), slice={{[0:2]}} b{n} = f32[1] slice(a{n}), slice={{[0:1]}}\n" for n in range(40)
    )
    joined = ", ".join(f"a{n}, b{n}" for n in range(40))
    text = f"HloModule m ENTRY e {{ x = f32[2] parameter(0) {lines} ROOT c = f32[120] concatenate({joined}), dimensions={{0}} }}"
    fired = rewrite(parse(text).entry, table(rules))
    assert fired.total() == 40 and len(tried) <= 2

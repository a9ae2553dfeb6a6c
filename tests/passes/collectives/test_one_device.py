"""Programs for several devices on one: collectives in all forms, asynchronous pairs, and annotations of shardings give
what the evaluator gives, on the CPU and the simulated GPU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.calls.markers import BORDERS, MARKERS
from heron.hlo.ir.types import ALL, ElementType
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.passes.pipelines import exchanges

TARGETS = ("cpu", "sim:sm_90")
ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
GROUPS = ("replica_groups={}", "replica_groups={{0}}", "replica_groups=[1,1]<=[1]")
GLOBAL = "channel_id=1, use_global_device_ids=true, replica_groups={{0}}"
#: op: attributes beside the groups, whether it takes several arrays
COLLECTIVES = {
    "all-reduce": (", to_apply=add", True),
    "all-gather": (", dimensions={0}", True),
    "reduce-scatter": (", dimensions={0}, to_apply=add", False),
    "all-to-all": (", dimensions={0}", False),
    "collective-broadcast": ("", False),
    "collective-permute": ("", True),
}
#: the value of a start, by the shape of operands and results
STARTS = {
    "all-reduce": "{1}",
    "all-gather": "({0}, {1})",
    "collective-permute": "({0}, {1}, u32[], u32[])",
}


def agree(text: str, targets: tuple[str, ...] = TARGETS) -> None:
    module, random = parse(text), np.random.default_rng(0)
    verify(module)
    inputs = [
        random.integers(0, 9, leaf.dims).astype(leaf.element_type.dtype)
        for p in module.entry.parameters
        for _, leaf in p.shape.leaves()
    ]
    wanted = _flat(evaluate(module, *inputs))
    for target in targets:
        got = _flat(heron.compile(module, target=target)(*inputs))
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def _flat(value: object) -> list[object]:
    return [x for v in value for x in _flat(v)] if isinstance(value, (tuple, list)) else [value]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Collectives one after another, each at once or begun and waited for, beside other work, with orders to keep."""
    lines, value, other = ["x = f32[4,3] parameter(0)", "y = f32[2] parameter(1)"], "x", "y"
    before: list[str] = []
    for n in range(draw(st.integers(1, 3))):
        opcode = draw(st.sampled_from(sorted(COLLECTIVES)))
        more, several = COLLECTIVES[opcode]
        both = several and draw(st.booleans())
        shape = "(f32[4,3], f32[2])" if both else "f32[4,3]"
        operands = f"{value}, {other}" if both else value
        groups = draw(st.sampled_from((*GROUPS, GLOBAL) if opcode.startswith(("all-r", "all-g")) else GROUPS))
        if opcode == "collective-permute":
            groups = draw(st.sampled_from(["source_target_pairs={{0,0}}", "source_target_pairs={}"]))
        after = f", control-predecessors={{{draw(st.sampled_from(before))}}}" if before and draw(st.booleans()) else ""
        form = draw(st.sampled_from(["at once", "pair", "wrapped"]))
        if form == "pair" and opcode in STARTS:
            begun = STARTS[opcode].format(shape, shape)
            lines.append(f"s{n} = {begun} {opcode}-start({operands}), {groups}{more}{after}")
            lines.append(f"w{n} = f32[2] negate({other}), control-predecessors={{s{n}}}")
            lines.append(f"c{n} = {shape} {opcode}-done(s{n})")
            before += [f"s{n}", f"w{n}"]
        elif form == "wrapped" and opcode not in STARTS:
            lines.append(f"s{n} = (({shape}), {shape}, u32[]) {opcode}-start({operands}), {groups}{more}{after}")
            lines.append(f"u{n} = (({shape}), {shape}, u32[]) {opcode}-update(s{n})")
            lines.append(f"c{n} = {shape} {opcode}-done(u{n})")
        else:
            lines.append(f"c{n} = {shape} {opcode}({operands}), {groups}{more}{after}")
        before.append(f"c{n}")
        value = f"c{n}"
        if both:
            lines += [f"g{n} = f32[4,3] get-tuple-element(c{n}), index=0"]
            lines += [f"h{n} = f32[2] get-tuple-element(c{n}), index=1"]
            value, other = f"g{n}", f"h{n}"
    lines.append(f"ROOT r = (f32[4,3], f32[2]) tuple({value}, {other})")
    return f"HloModule m\n{ADD}ENTRY e {{\n" + "\n".join(lines) + "\n}\n"


@settings(max_examples=40, deadline=None)
@given(programs())
def test_collectives_of_one_device(text: str) -> None:
    agree(text)


WORK = {
    "a fusion": ("f { p = f32[4] parameter(0) ROOT r = f32[4] negate(p) }\nw { p = f32[4] parameter(0) "
                 "ROOT r = f32[4] fusion(p), kind=kLoop, calls=f }\n", "async-start(x), calls=w"),
    "a call": ("f { p = f32[4] parameter(0) q = f32[4] sine(p) ROOT r = f32[4] negate(q) }\n",
               "call-start(x), to_apply=f"),
    "a sort": ("lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = pred[] compare(a, b), direction=LT }\n"
               "w { p = f32[4] parameter(0) ROOT s = f32[4] sort(p), dimensions={0}, to_apply=lt }\n",
               "async-start(x), calls=w"),
    "a slice": ("", "slice-start(x), slice={[0:4]}"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_any_work_that_is_begun(name: str) -> None:
    calls, start = WORK[name]
    agree(
        f"HloModule m\n{calls}ENTRY e {{\nx = f32[4] parameter(0)\ns = ((f32[4]), f32[4], s32[]) {start}\n"
        f"n = f32[4] abs(x)\nd = f32[4] {start.split('-start')[0]}-done(s)\nROOT r = f32[4] add(d, n)\n}}\n"
    )


def test_broadcasts_from_one_of_two_devices_stay() -> None:
    text = "HloModule m, replica_count=2\nENTRY e { x = f32[4] parameter(0)\n%s }\n"
    module = parse(text % "ROOT c = f32[4] collective-broadcast(x), replica_groups={{0}}")
    assert not get("trivial-collective-remover").run(module, PassContext())


def test_a_program_for_one_device_runs_no_pass_on_exchanges() -> None:
    text = "HloModule m%s\nENTRY e { x = f32[4] parameter(0) ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,0}} }"
    for header, ran in (("", False), (", replica_count=2", True)):
        context = PassContext()
        exchanges().run(parse(text % header), context)
        assert bool(context.records) == ran


# -- annotations -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("effect", ["", ", custom_call_has_side_effect=true"])
@pytest.mark.parametrize("target", sorted({*MARKERS, *BORDERS}))
def test_annotations_change_nothing(target: str, effect: str) -> None:
    call = f'custom-call(%s), custom_call_target="{target}"{effect}'
    parameter = "x = f32[3,2] parameter(0)"
    agree(f"HloModule m\nENTRY e {{ {parameter} c = f32[3,2] {call % 'x'} ROOT n = f32[3,2] negate(c) }}\n")
    agree(f"HloModule m\nENTRY e {{ {parameter} ROOT c = f32[3,2]{{0,1}} {call % 'x'} }}\n", ("cpu",))
    if target in BORDERS and "sdy" in target:
        agree(f"HloModule m\nENTRY e {{ {parameter} ROOT c = (f32[3,2], f32[3,2]) {call % 'x, x'} }}\n", ("cpu",))
    elif target in MARKERS:
        agree(f"HloModule m\nENTRY e {{ {parameter} c = () {call % 'x'} ROOT n = f32[3,2] negate(x) }}\n", ("cpu",))
        pair = "(f32[3,2], f32[3,2])"
        agree(f"HloModule m\nENTRY e {{ {parameter} t = {pair} tuple(x, x) ROOT c = {pair} {call % 't'} }}\n", ("cpu",))


@pytest.mark.parametrize("target", sorted(BORDERS))
def test_a_border_between_devices_is_refused_by_its_reason(target: str) -> None:
    text = f'ENTRY e {{ x = f32[4] parameter(0) ROOT c = f32[2] custom-call(x), custom_call_target="{target}" }}'
    with pytest.raises(HeronError, match="GEN011") as refused:
        heron.compile(parse(f"HloModule m\n{text}\n"))
    assert "compiled for one" in (refused.value.why or "")


@pytest.mark.parametrize("op", ["all-gather(p), dimensions={0}", "reduce-scatter(p), dimensions={0}, to_apply=add"])
def test_a_collective_of_another_size_was_written_for_more_devices(op: str) -> None:
    size = 8 if op.startswith("all-gather") else 2
    add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    text = f"HloModule m\n{add}ENTRY e {{\n p = f32[4] parameter(0)\n g = f32[{size}] {op}\n ROOT n = negate(g)\n}}"
    with pytest.raises(HeronError, match=op.partition("(")[0]):
        heron.compile(parse(text), target="cpu")


@pytest.mark.parametrize("pairs", ["{{0,1}}", "{{1,0}}", "{{0,0},{1,1}}"])
def test_a_permutation_that_names_other_devices_is_refused(pairs: str) -> None:
    """As by the evaluator: what device 0 gets is not what it has."""
    body = f"p = f32[1] parameter(0)\n c = f32[1] collective-permute(p), source_target_pairs={pairs}"
    module = parse(f"HloModule m\nENTRY e {{\n {body}\n ROOT n = f32[1] negate(c)\n}}")
    with pytest.raises(HeronError, match="collective-permute"):
        evaluate(module, np.ones(1, np.float32))
    with pytest.raises(HeronError, match="collective-permute"):
        heron.compile(module, target="cpu")


@pytest.mark.parametrize("element", [t for t in ALL if t.byte_size], ids=str)
def test_who_receives_nothing_has_zero_bytes(element: ElementType) -> None:
    """The bytes, not the number: f8e8m0fnu has no zero, and one converted to it is NaN."""
    body = f"x = {element}[3] parameter(0)\n ROOT r = {element}[3] collective-permute(x), source_target_pairs={{}}"
    module, x = parse(f"HloModule m\nENTRY e {{\n {body}\n}}"), np.ones(3, element.dtype)
    assert evaluate(module, x)[0].tobytes() == bytes(x.nbytes)
    np.testing.assert_array_equal(np.asarray(heron.compile(module, target="cpu")(x)).view(np.uint8), 0)

"""Passes on collectives change no value of a program for several devices, in groups of any kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

PASSES = (
    "all-reduce-simplifier",
    "all-reduce-reassociate",
    "reduce-scatter-reassociate",
    "reduce-scatter-creator",
    "all-gather-dynamic-slice-simplifier",
    "all-gather-dynamic-slice-permuted-offset-simplifier",
    "all-gather-broadcast-reorder",
    "all-gather-optimizer",
    "all-reduce-folder",
    "collective-cse",
    "collective-quantizer",
    "all-reduce-combiner",
    "all-gather-combiner",
    "reduce-scatter-combiner",
    "collective-permute-combiner",
    "all-gather-decomposer",
    "reduce-scatter-decomposer",
    "all-reduce-decomposer",
    "all-to-all-decomposer",
)
REDUCERS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
maximum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }
"""
#: groups of four devices, their size, and the place of each device
GROUPS = [
    ("{{0,1,2,3}}", 4, (0, 1, 2, 3)),
    ("{{2,0,3,1}}", 4, (1, 3, 0, 2)),
    ("{{0,1},{2,3}}", 2, (0, 1, 0, 1)),
    ("{{0,2},{3,1}}", 2, (0, 1, 1, 0)),
    ("[2,2]<=[2,2]T(1,0)", 2, (0, 0, 1, 1)),
]
KINDS = tuple("reduce scatter slice gather broadcast permute swap sum half parts twice products".split())
PAIRS = ("{{0,1},{1,2},{2,3},{3,0}}", "{{0,1},{1,0}}")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A chain of exchanges and of ops that passes look for beside them, on [8] and [8,2] arrays of four devices."""
    lines = ["x0 = f32[8] parameter(0)", "x1 = f32[8] parameter(1), sharding={replicated}", "id = u32[] partition-id()"]
    values = ["x0", "x1"]

    def add(text: str) -> str:
        name = f"v{len(lines)}"
        lines.append(f"{name} = {text}")
        return name

    for channel in range(1, draw(st.integers(2, 7))):
        x = draw(st.sampled_from(values))
        groups, size, places = draw(st.sampled_from(GROUPS))
        common = f"channel_id={channel}, use_global_device_ids=true, replica_groups={groups}"
        reducer = draw(st.sampled_from(("add", "maximum")))
        kind = draw(st.sampled_from(KINDS))
        if kind == "reduce":
            values.append(add(f"f32[8] all-reduce({x}), {common}, to_apply={reducer}"))
        elif kind in ("scatter", "slice", "gather"):
            part = 8 // size
            if draw(st.booleans()):
                places = draw(st.permutations(places))
            table = add(f"s32[4] constant({{{', '.join(str(p * part) for p in places)}}})")
            at = add(f"s32[] reshape({add(f's32[1] dynamic-slice({table}, id), dynamic_slice_sizes={{1}}')})")
            whole = x
            if kind == "scatter":
                whole = add(f"f32[8] all-reduce({x}), {common}, to_apply={reducer}")
            if kind == "gather":
                first = add(f"f32[{part}] slice({x}), slice={{[0:{part}]}}")
                whole = add(f"f32[8] all-gather({first}), {common}, dimensions={{0}}")
            own = add(f"f32[{part}] dynamic-slice({whole}, {at}), dynamic_slice_sizes={{{part}}}")
            values.append(add(f"f32[8] all-gather({own}), {common}, dimensions={{0}}"))
        elif kind == "broadcast":
            wide = add(f"f32[8,2] broadcast({x}), dimensions={{0}}")
            dim, dims = draw(st.sampled_from(((0, f"{8 * size},2"), (1, f"8,{2 * size}"))))
            much = add(f"f32[{dims}] all-gather({wide}), {common}, dimensions={{{dim}}}")
            values.append(add(f"f32[8] reshape({add(f'f32[8,1] slice({much}), slice={{[0:8], [1:2]}}')})"))
        elif kind == "permute":
            pairs = draw(st.sampled_from(PAIRS))
            values.append(add(f"f32[8] collective-permute({x}), channel_id={channel}, source_target_pairs={pairs}"))
        elif kind == "swap":
            plain = f"channel_id={channel}, replica_groups={groups}"
            values.append(add(f"f32[8] all-to-all({x}), {plain}, dimensions={{0}}"))
        elif kind == "sum":
            y = draw(st.sampled_from(values))
            a, b = (add(f"f32[8] all-reduce({v}), {common}, to_apply=add") for v in (x, y))
            values.append(add(f"f32[8] add({a}, {b})"))
        elif kind in ("parts", "products"):
            part, y = 8 // size, draw(st.sampled_from(values))
            if kind == "parts":
                form = f"{common}, dimensions={{0}}, to_apply={reducer}"
                a, b = (add(f"f32[{part}] reduce-scatter({v}), {form}") for v in (x, y))
                both = add(f"f32[{part}] add({a}, {b})")
                values.append(add(f"f32[8] all-gather({both}), {common}, dimensions={{0}}"))
            else:
                a, b = (add(f"f32[{8 * size}] all-gather({v}), {common}, dimensions={{0}}") for v in (x, y))
                product = add(f"f32[{8 * size}] maximum({a}, {b})")
                values.append(add(f"f32[8] slice({product}), slice={{[3:11]}}"))
        elif kind == "twice":
            first = add(f"f32[8] all-reduce({x}), {common}, to_apply={reducer}")
            again = (
                f"channel_id={channel}, use_global_device_ids=true, replica_groups={draw(st.sampled_from(GROUPS))[0]}"
            )
            values.append(add(f"f32[8] all-reduce({first}), {again}, to_apply={reducer}"))
        else:
            g = add(f"f32[{8 * size}] all-gather({x}), {common}, dimensions={{0}}")
            h = add(f"f32[{8 * size}] convert({add(f'bf16[{8 * size}] convert({g})')})")
            values.append(add(f"f32[8] slice({h}), slice={{[1:9]}}"))
    outputs = ", ".join(values[-3:])
    types = ", ".join(["f32[8]"] * len(values[-3:]))
    body = "\n".join([*lines, f"ROOT r = ({types}) tuple({outputs})"])
    return f"HloModule m, num_partitions=4\n{REDUCERS}\nENTRY e {{\n{body}\n}}\n"


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=12, deadline=None)
@given(text=programs())
def test_values_stay(name: str, text: str) -> None:
    module = parse(text)
    verify(module)
    check = ValueCheck(module)
    if PassContext().run_pass(get(name), module):
        verify(module)
        check.after(name, module)


@settings(max_examples=12, deadline=None)
@given(text=programs())
def test_values_stay_after_all(text: str) -> None:
    module = parse(text)
    check = ValueCheck(module)
    for name in PASSES[:15]:
        PassContext().run_pass(get(name), module)
    verify(module)
    check.after("all of them", module)

"""Passes on collectives change no value of a program for several devices, in groups of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import heron
from heron.evaluator import evaluate_devices
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.checks import ValueCheck, difference, random_inputs
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.passes.pipelines import combiners, exchanges

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
    "all-reduce-of-one-rewriter",
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
    "all-reduce-splitter",
    "all-reduce-cross-combiner",
    "all-reduce-reduce-scatter-reorder",
    "all-reduce-promotion",
    "all-reduce-contiguous",
    "all-reduce-blueconnect",
    "all-gather-pad-ds-simplifier",
    "all-gather-remove-degenerate-dims",
    "collective-major-dimension",
    "canonicalize-all-gather-for-cse",
    "collective-select-folder",
    "collective-permute-cycle-decomposer",
    "collective-permute-decomposer",
    "p2p-schedule-preparation",
    "send-recv-combiner",
    "collectives-schedule-linearizer",
    "windowed-einsum",
    "collective-reduction-expander",
    "collective-major-dimension",
)
#: options with which a pass finds something in these programs
OPTIONS = {
    "all-reduce-blueconnect": {"devices_per_host": 2},
    "all-reduce-promotion": {"types": "f32=f64"},
    "collective-major-dimension": {"rows": 1},
}
#: passes that make what a pass looks for
BEFORE = {
    "p2p-schedule-preparation": ("collective-permute-cycle-decomposer", "collective-permute-decomposer"),
    "send-recv-combiner": ("collective-permute-cycle-decomposer", "collective-permute-decomposer"),
}
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
KINDS = tuple(
    "reduce scatter slice gather broadcast permute swap sum half parts twice products pieces window form stage "
    "linear whole dot both scaled one".split()
)
PAIRS = ("{{0,1},{1,2},{2,3},{3,0}}", "{{0,1},{1,0}}")


def _at(add: Callable[[str], str], starts: Sequence[int]) -> str:
    """The entry of a list that belongs to the device."""
    table = add(f"s32[4] constant({{{', '.join(map(str, map(int, starts)))}}})")
    return add(f"s32[] reshape({add(f's32[1] dynamic-slice({table}, id), dynamic_slice_sizes={{1}}')})")


def _scaled(draw: st.DrawFn, add: Callable[[str], str], x: str, n: int, k: str, moved: str) -> str:
    """A product with a scalar, moved before or after."""
    factor = add(f"f32[{n}] broadcast({k}), dimensions={{}}")
    first = draw(st.booleans())
    if first:
        x = add(f"f32[{n}] {draw(st.sampled_from(('multiply', 'add', 'maximum')))}({x}, {factor})")
    if moved == "reverse":
        x = add(f"f32[{n}] reverse({x}), dimensions={{0}}")
    elif moved == "reshape":
        x = add(f"f32[{n}] reshape({add(f'f32[2,{n // 2}] reshape({x})')})")
    return x if first else add(f"f32[{n}] subtract({factor}, {x})")


def _dot(draw: st.DrawFn, add: Callable[[str], str], x: str, common: str, size: int) -> str:
    """A product with a gathered array, or one that is scattered."""
    y = add(f"f32[2,4] reshape({x})")
    w = add(f"f32[4,{2 * size}] broadcast({add('f32[4] iota(), iota_dimension=0')}), dimensions={{0}}")
    contract = draw(st.sampled_from(("free", "contracted", "batch", "scattered")))
    if contract == "scattered":
        d = add(f"f32[2,{2 * size}] dot({y}, {w}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        part = add(f"f32[2,2] reduce-scatter({d}), {common}, dimensions={{1}}, to_apply=add")
        return add(f"f32[8] pad({add(f'f32[4] reshape({part})')}, {add('f32[] constant(1)')}), padding=0_4")
    g = add(f"f32[{2 * size},4] all-gather({y}), {common}, dimensions={{0}}")
    if contract == "free":
        d = add(f"f32[{2 * size},{2 * size}] dot({g}, {w}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        row = add(f"f32[1,{2 * size}] slice({d}), slice={{[1:2], [0:{2 * size}]}}")
    elif contract == "batch":
        batch = "lhs_batch_dims={1}, rhs_batch_dims={0}, lhs_contracting_dims={0}, rhs_contracting_dims={1}"
        t = add(f"f32[{2 * size},4] transpose({w}), dimensions={{1,0}}")
        d = add(
            f"f32[{2 * size}] dot({g}, {t}), {batch.replace('dims={1}, rhs_batch_dims={0}', 'dims={0}, rhs_batch_dims={0}').replace('lhs_contracting_dims={0}', 'lhs_contracting_dims={1}')}"
        )
        row = add(f"f32[1,{2 * size}] reshape({d})")
    else:
        d = add(f"f32[4,4] dot({w}, {g}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        return add(f"f32[8] slice({add(f'f32[16] reshape({d})')}), slice={{[4:12]}}")
    flat = add(f"f32[{2 * size}] reshape({row})")
    return add(f"f32[8] pad({flat}, {add('f32[] constant(1)')}), padding=0_{8 - 2 * size}")


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
            if draw(st.booleans()):  # in another form
                n = 8 if kind != "gather" else part * size
                form = add(f"f32[{n},1] reshape({whole})")
                zero = add("s32[] constant(0)")
                row = add(f"f32[{part},1] dynamic-slice({form}, {at}, {zero}), dynamic_slice_sizes={{{part},1}}")
                own = add(f"f32[{part}] reshape({row})")
            else:
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
        elif kind == "pieces":  # of a sum, each part is taken by several devices or by one
            count = draw(st.sampled_from((2, 4)))
            starts = draw(st.permutations([k % count * (8 // count) for k in range(4)]))
            summed = add(f"f32[8] all-reduce({x}), {common}, to_apply={reducer}")
            own = add(
                f"f32[{8 // count}] dynamic-slice({summed}, {_at(add, starts)}), dynamic_slice_sizes={{{8 // count}}}"
            )
            values.append(add(f"f32[8] pad({own}, {add('f32[] constant(0)')}), padding=0_{8 - 8 // count}"))
        elif kind == "window":
            low, high = draw(st.integers(-1, 3)), draw(st.integers(0, 9))
            starts = draw(st.lists(st.integers(0, 8 * size + low + high - 8), min_size=4, max_size=4))
            if draw(st.booleans()):  # windows that begin with a part
                starts = [low + 8 * k for k in range(4)]
            g = add(f"f32[{8 * size}] all-gather({x}), {common}, dimensions={{0}}")
            much = add(f"f32[{8 * size + low + high}] pad({g}, {add('f32[] constant(3)')}), padding={low}_{high}")
            values.append(add(f"f32[8] dynamic-slice({much}, {_at(add, starts)}), dynamic_slice_sizes={{8}}"))
        elif kind == "form":
            form = draw(st.sampled_from(("1,8", "8,1", "2,1,4", "2,4", "1,2,4")))
            dims = form.split(",")
            dim = draw(st.integers(0, len(dims) - 1))
            y = add(f"f32[{form}] reshape({x})")
            dims[dim] = str(int(dims[dim]) * size)
            g = add(f"f32[{','.join(dims)}] all-gather({y}), {common}, dimensions={{{dim}}}")
            values.append(add(f"f32[8] slice({add(f'f32[{8 * size}] reshape({g})')}), slice={{[0:{8 * size}:{size}]}}"))
        elif kind == "stage":
            stage = draw(st.integers(0, 3))
            there = add(
                f"pred[] compare(id, {add(f'u32[] constant({stage})')}), direction={draw(st.sampled_from(('EQ', 'NE', 'LT')))}"
            )
            chosen = add(
                f"f32[8] select({add(f'pred[8] broadcast({there}), dimensions={{}}')}, {x}, {draw(st.sampled_from(values))})"
            )
            pairs = draw(st.sampled_from((f"{{{{{stage},{(stage + 1) % 4}}}}}", *PAIRS)))
            values.append(
                add(f"f32[8] collective-permute({chosen}), channel_id={channel}, source_target_pairs={pairs}")
            )
        elif kind == "linear":
            groups, others = draw(st.permutations([GROUPS[2][0], GROUPS[4][0]]))
            form = "channel_id={}, use_global_device_ids=true, replica_groups={}, to_apply=add"
            summed = add(f"f32[8] all-reduce({x}), {form.format(channel, groups)}")
            for op in draw(st.lists(st.sampled_from(("negate", "multiply", "add", "subtract")), max_size=3)):
                summed = add(f"f32[8] {op}({summed}{'' if op == 'negate' else ', x1'})")
            values.append(add(f"f32[8] all-reduce({summed}), {form.format(channel + 20, others)}"))
        elif kind == "whole":
            part = 8 // size
            other = draw(st.sampled_from(GROUPS))[0]
            form = f"channel_id={channel + 20}, use_global_device_ids=true, replica_groups={other}, to_apply={reducer}"
            summed = add(f"f32[8] all-reduce({x}), {form}")
            own = add(f"f32[{part}] reduce-scatter({summed}), {common}, dimensions={{0}}, to_apply={reducer}")
            values.append(add(f"f32[8] all-gather({own}), {common}, dimensions={{0}}"))
        elif kind == "dot":
            values.append(_dot(draw, add, x, common, size))
        elif kind == "scaled":  # narrow before or after, with a factor that all have
            k = add(f"f32[] reshape({add('f32[1] slice(x1), slice={[0:1]}')})")
            moved = draw(st.sampled_from(("", "reverse", "reshape")))
            way = draw(st.sampled_from(("all-gather", "collective-permute", "all-to-all")))
            n = 8 * size if way == "all-gather" else 8
            narrow = draw(st.booleans())
            y = x if narrow else _scaled(draw, add, add(f"f32[8] convert({add(f'bf16[8] convert({x})')})"), 8, k, moved)
            form = {
                "all-gather": f"{common}, dimensions={{0}}",
                "all-to-all": f"channel_id={channel}, replica_groups={groups}, dimensions={{0}}",
            }
            form["collective-permute"] = f"channel_id={channel}, source_target_pairs={draw(st.sampled_from(PAIRS))}"
            g = add(f"f32[{n}] {way}({y}), {form[way]}")
            if narrow:
                g = _scaled(draw, add, g, n, k, moved)
                g = add(f"f32[{n}] convert({add(f'bf16[{n}] convert({g})')})")
            values.append(add(f"f32[8] slice({g}), slice={{[0:8]}}"))
        elif kind == "one":  # what one device of a group has, or several, or none
            flag = _at(add, [draw(st.integers(0, 3)) == 0 if draw(st.booleans()) else p == 1 for p in places])
            p = add(
                f"pred[] compare({flag}, {add('s32[] constant(1)')}), direction={draw(st.sampled_from(('EQ', 'NE')))}"
            )
            mask, least = add(f"pred[8] broadcast({p}), dimensions={{}}"), "0" if reducer == "add" else "-inf"
            none = add(f"f32[8] broadcast({add(f'f32[] constant({least})')}), dimensions={{}}")
            both = draw(st.permutations((x, none)))
            o = add(f"f32[8] select({mask}, {both[0]}, {both[1]})")
            values.append(add(f"f32[8] all-reduce({o}), {common}, to_apply={reducer}"))
        elif kind == "both":
            wide = add(f"f32[2,4] reshape({draw(st.sampled_from(values))})")
            r = add(f"(f32[8], f32[2,4]) all-reduce({x}, {wide}), {common}, to_apply={reducer}")
            values.append(add(f"f32[8] reshape({add(f'f32[2,4] get-tuple-element({r}), index=1')})"))
            values.append(add(f"f32[8] get-tuple-element({r}), index=0"))
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
    for other in BEFORE.get(name, ()):
        PassContext().run_pass(get(other), module)
    if PassContext().run_pass(get(name, **OPTIONS.get(name, {})), module):
        verify(module)
        check.after(name, module)


@settings(max_examples=12, deadline=None)
@given(text=programs())
def test_values_stay_after_all(text: str) -> None:
    module = parse(text)
    check = ValueCheck(module)
    for _ in range(2):
        PassContext().run_pass(exchanges(), module)
        PassContext().run_pass(combiners(), module)
    verify(module)
    check.after("all of them", module)


@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(text=programs())
def test_compiled_programs_compute_the_same(text: str) -> None:
    module = parse(text)
    inputs = [random_inputs(module, device) for device in range(4)]
    program = heron.compile(module, target="cpu")
    for got, wanted in zip(program.run_devices(inputs), evaluate_devices(module, inputs), strict=True):
        assert not [found for a, b in zip(wanted, got, strict=True) if (found := difference(a, b))]

"""Ops with windows: random sizes, attributes, meshes and shardings, against the global program."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from heron.hlo.text import parse
from tests.passes.sharding.devices import agree, inputs_of
from tests.passes.sharding.one_op import MESHES, check, module_of, permuted, random_axes, transfers


def _window(rng: random.Random, n: int, dilate: bool = True) -> tuple[str, int]:
    """The text of a window over `n` elements, and how many there are."""
    size, stride = rng.randint(1, 5), rng.randint(1, 3)
    base, wide = (rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])) if dilate else (1, 1)
    low, high = rng.randint(-1, 4), rng.randint(-1, 4)
    padded = (n - 1) * base + 1 + low + high
    reach = (size - 1) * wide + 1
    if padded < reach:
        high += reach - padded
        padded = reach
    text = f"{size}/{stride}/{low}_{high}/{base}/{wide}"
    return text, (padded - reach) // stride + 1


def _spelled(*windows: str) -> str:
    parts = [w.split("/") for w in windows]
    names = ["size", "stride", "pad", "lhs_dilate", "rhs_dilate"]
    return "window={" + " ".join(f"{name}={'x'.join(p[n] for p in parts)}" for n, name in enumerate(names)) + "}"


def _reduce_window(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), random_axes(rng, devices)
    text, m = _window(rng, n)
    op = rng.choice(["add", "max"])
    return f"""
      x = f32[2,{n}] parameter(0) @[{{}}, {axes}]@
      v = f32[] constant({"-inf" if op == "max" else rng.randint(0, 2)})
      ROOT r = f32[2,{m}] reduce-window(x, v), {_spelled("1/1/0_0/1/1", text)}, to_apply={op}
        @[{{}}, {rng.choice([axes, "{}"])}]@"""


def _cumulative(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), random_axes(rng, devices)
    op, delay = rng.choice(["add", "max"]), rng.choice([0, 0, 1])
    low, high = n - 1 + delay, -delay
    if rng.random() < 0.5:
        low, high = high, low
    return f"""
      x = f32[{n},2] parameter(0) @[{axes}, {{}}]@
      v = f32[] constant({"-inf" if op == "max" else rng.randint(0, 2)})
      ROOT r = f32[{n},2] reduce-window(x, v), window={{size={n}x1 pad={low}_{high}x0_0}}, to_apply={op}
        @[{axes}, {{}}]@"""


def _convolution(rng: random.Random, devices: int) -> str:
    n, m, axes = rng.randint(1, 20), rng.randint(1, 5), random_axes(rng, devices)
    (text, places), (other, columns) = _window(rng, n), _window(rng, m)
    size, wide = int(text.split("/")[0]), int(other.split("/")[0])
    groups, batch_groups = rng.choice([(1, 1), (1, 1), (1, 1), (4, 1), (1, 4)])
    batch, ins, outs = rng.choice([4, 8]), rng.choice([1, 2, 3]), rng.choice([4, 8])
    reverse = rng.choice(["", " rhs_reversal=1x0", " rhs_reversal=1x1"])
    free = ["{}"] * 4
    roles = rng.sample(range(4), 2)

    def split(*dims: int) -> str:
        """Some of the dimensions split."""
        if devices == 8:
            found = list(free)
            found[dims[roles[0]]], found[dims[roles[1]]] = "{'y'}", rng.choice(["{'x'}", "{}"])
            return ", ".join(found)
        found = list(free)
        found[dims[roles[0]]] = axes
        return ", ".join(found)

    spelled = _spelled(text, other).replace("}", reverse + "}")
    return f"""
      x = f32[{batch},{n},{m},{ins * groups}] parameter(0) @[{split(0, 1, 2, 3)}]@
      k = f32[{size},{wide},{ins},{outs}] parameter(1) @[{split(3, 0, 1, 2) if rng.random() < 0.5 else ", ".join(free)}]@
      ROOT r = f32[{batch // batch_groups},{places},{columns},{outs}] convolution(x, k), {spelled},
        dim_labels=b01f_01io->b01f, feature_group_count={groups}, batch_group_count={batch_groups}
        @[{split(0, 1, 2, 3)}]@"""


def _kernel_gradient(rng: random.Random, devices: int) -> str:
    """A convolution whose window is about as large as its input, both split."""
    axes = random_axes(rng, devices)
    n = rng.randint(4, 24)
    w, dilation = rng.choice([n, n - 2, n - 1]), rng.choice([1, 1, 2])
    base = rng.choice([1, 1, 2])
    low = rng.randint(0, 2)
    reach = (w - 1) * dilation + 1
    wide = (n - 1) * base + 1
    high = max(reach - wide - low, 0) + rng.randint(0, 2)
    m = wide + low + high - reach + 1
    reverse = rng.choice(["", " rhs_reversal=1"])
    return f"""
      x = f32[3,{n},4] parameter(0) @[{{}}, {axes}, {{}}]@
      k = f32[{w},3,2] parameter(1) @[{rng.choice([axes, axes, "{}"])}, {{}}, {{}}]@
      ROOT r = f32[4,{m},2] convolution(x, k), dim_labels=f0b_0io->b0f,
        window={{size={w} pad={low}_{high} lhs_dilate={base} rhs_dilate={dilation}{reverse}}} @[{{}}, {{}}, {{}}]@"""


def _select_and_scatter(rng: random.Random, devices: int) -> str:
    n, m, axes = rng.randint(1, 24), rng.randint(1, 6), _some(rng, devices)
    (text, places), (other, columns) = _window(rng, n, dilate=False), _window(rng, m, dilate=False)
    t, low = rng.choice([("f32", "-inf"), ("s32", "0")])
    scatter = "add" if t == "f32" else "add_s32"
    return f"""
      x = {t}[{n},{m}] parameter(0) @[{axes}]@
      s = {t}[{places},{columns}] parameter(1) @[{rng.choice([axes, "{}, {}"])}]@
      v = {t}[] constant({rng.randint(0, 2)})
      ROOT r = {t}[{n},{m}] select-and-scatter(x, s, v), {_spelled(text, other)}, select=ge_{t}, scatter={scatter}
        @[{rng.choice([axes, "{}, {}"])}]@"""


def _scan(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), random_axes(rng, devices)
    reverse = rng.choice(["", ", is_reverse=true"])
    return f"""
      x = f32[2,{n}] parameter(0) @[{{}}, {axes}]@
      c = f32[2] parameter(1) @[{{}}]@
      ROOT r = (f32[2,{n}], f32[2]) scan(x, c), dimensions={{1}}, num_carries=1{reverse}, is_associative=true,
        to_apply=rows, sharding={{{{mesh[{MESHES[devices]}], [{{}}, {axes}]}}, {{mesh[{MESHES[devices]}], [{{}}]}}}}"""


def _pairs(rng: random.Random, devices: int) -> str:
    """The largest elements so far and their places: a scan of two arrays by a computation."""
    n, axes = rng.randint(1, 30), random_axes(rng, devices)
    low, high = rng.choice([(n - 1, 0), (0, n - 1)])
    both = ", ".join([f"{{mesh[{MESHES[devices]}], [{axes}]}}"] * 2)
    return f"""
      x = f32[{n}] parameter(0) @[{axes}]@
      k = s32[{n}] iota(), iota_dimension=0 @[{axes}]@
      v = f32[] constant(-inf)
      w = s32[] constant({n})
      ROOT r = (f32[{n}], s32[{n}]) reduce-window(x, k, v, w), window={{size={n} pad={low}_{high}}}, to_apply=largest,
        sharding={{{both}}}"""


def _some(rng: random.Random, devices: int) -> str:
    """The text of a sharding of two dimensions."""
    if devices > 2 and rng.random() < 0.3:
        return "{'x'}, {'y'}"
    axes = random_axes(rng, devices)
    return rng.choice([f"{axes}, {{}}", f"{{}}, {axes}"])


KINDS: dict[str, Callable[[random.Random, int], str]] = {
    "reduce-window": _reduce_window,
    "cumulative": _cumulative,
    "pairs": _pairs,
    "scan": _scan,
    "select-and-scatter": _select_and_scatter,
    "convolution": _convolution,
    "kernel gradient": _kernel_gradient,
}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", KINDS)
def test_random(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    devices = rng.choice(list(MESHES))
    check(devices, KINDS[kind](rng, devices), seed)


@pytest.mark.parametrize(
    ("body", "elements"),
    [
        pytest.param(
            """
      a = f32[16] parameter(0) @[{'x','y'}]@
      v = f32[] constant(0)
      ROOT b = f32[16] reduce-window(a, v), window={size=3 pad=1_1}, to_apply=add @[{'x','y'}]@""",
            2,
            id="window of three",
        ),
        pytest.param(
            """
      a = f32[16] parameter(0) @[{'x','y'}]@
      v = f32[] constant(0)
      ROOT b = f32[8] reduce-window(a, v), window={size=2 stride=2}, to_apply=add @[{'x','y'}]@""",
            0,
            id="pooling within shares",
        ),
        pytest.param(
            """
      x = f32[2,16,3] parameter(0) @[{}, {'x','y'}, {}]@
      k = f32[3,3,2] parameter(1) @[{}, {}, {}]@
      ROOT r = f32[2,8,2] convolution(x, k), dim_labels=b0f_0io->b0f, window={size=3 stride=2 pad=0_1}
        @[{}, {'x','y'}, {}]@""",
            6,
            id="convolution with stride",
        ),
        pytest.param(
            """
      x = f32[2,16,3] parameter(0) @[{}, {}, {}]@
      k = f32[3,3,2] parameter(1) @[{}, {}, {}]@
      ROOT r = f32[2,16,2] convolution(x, k), dim_labels=b0f_0io->b0f, window={size=3 pad=1_1}
        @[{}, {'x','y'}, {}]@""",
            0,
            id="convolution of a whole array",
        ),
    ],
)
def test_elements_sent(body: str, elements: int) -> None:
    assert permuted(8, body) <= elements


def test_a_kernel_gradient_is_a_partial_sum_over_a_halo() -> None:
    found = transfers(
        4,
        """
      x = f32[3,24,4] parameter(0) @[{}, {'x','y'}, {}]@
      k = f32[24,3,2] parameter(1) @[{'x','y'}, {}, {}]@
      ROOT r = f32[4,3,2] convolution(x, k), dim_labels=f0b_0io->b0f, window={size=24 pad=1_1} @[{}, {}, {}]@""",
    )
    sent = sorted((i.opcode, i.shape.dims) for i in found)
    rows = ("collective-permute", (3, 1, 4))
    assert sent == [("all-reduce", (4, 3, 2)), rows, rows]


def test_rubbish_of_a_kernel_meets_no_infinity() -> None:
    """The last share of the kernel has one element of two: the other must not be multiplied with the input's end."""
    module = parse(
        module_of(
            4,
            """
      x = f32[1,9,1] parameter(0) @[{}, {'x','y'}, {}]@
      k = f32[7,1,1] parameter(1) @[{'x','y'}, {}, {}]@
      ROOT r = f32[1,3,1] convolution(x, k), dim_labels=f0b_0io->b0f, window={size=7} @[{}, {}, {}]@""",
        )
    )
    x, k = inputs_of(module)
    x[0, 8, 0] = np.inf
    agree(module, [x, np.abs(k) + 1])

"""Ops that reach into other shares: random sizes, attributes, meshes and shardings, against the global program."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from heron.hlo.text import parse
from heron.passes.framework.context import PassContext
from heron.passes.simplify.dce import Dce
from tests.passes.sharding.devices import agree, inputs_of, sharded

MESHES = {2: "'x'=2", 4: "'x'=2,'y'=2", 8: "'x'=2,'y'=4", 6: "'x'=3,'y'=2"}
AXES = {2: ["{'x'}"], 4: ["{'x'}", "{'y'}", "{'x','y'}"], 8: ["{'x'}", "{'y'}", "{'y','x'}"], 6: ["{'x'}", "{'x','y'}"]}
SUM = """
  add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
  max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
"""


def _axes(rng: random.Random, devices: int) -> str:
    return rng.choice(AXES[devices])


def _module(devices: int, body: str) -> str:
    text = f"mesh[{MESHES[devices]}]\nHloModule m, num_partitions={devices}\n{SUM}\nENTRY main {{\n{body}\n}}"
    return sharded(text)


def _check(devices: int, body: str, seed: int):
    module = parse(_module(devices, body))
    return agree(module, inputs_of(module, seed))


def _slice(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), _axes(rng, devices)
    start = rng.randint(0, n - 1)
    limit, stride = rng.randint(start, n), rng.randint(1, 4)
    m = -(-(limit - start) // stride)
    out = rng.choice([axes, axes, "{}", _axes(rng, devices)])
    return f"""
      x = f32[3,{n}] parameter(0) @[{{}}, {axes}]@
      ROOT r = f32[2,{m}] slice(x), slice={{[1:3], [{start}:{limit}:{stride}]}} @[{{}}, {out}]@"""


def _reverse(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), _axes(rng, devices)
    return f"""
      x = s32[{n},2] parameter(0) @[{axes}, {{}}]@
      ROOT r = s32[{n},2] reverse(x), dimensions={{0,1}} @[{rng.choice([axes, "{}"])}, {{}}]@"""


def _pad(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), _axes(rng, devices)
    interior = rng.choice([0, 0, 1, 2])
    wide = (n - 1) * (interior + 1) + 1
    low, high = rng.randint(-2, 9), rng.randint(-2, 9)
    m = wide + low + high
    if m < 0:
        low, high, m = 1, 0, wide + 1
    return f"""
      x = f32[{n},2] parameter(0) @[{axes}, {{}}]@
      v = f32[] parameter(1) @[]@
      ROOT r = f32[{m},3] pad(x, v), padding={low}_{high}_{interior}x1_0 @[{rng.choice([axes, "{}"])}, {{}}]@"""


def _concatenate(rng: random.Random, devices: int) -> str:
    sizes = [rng.randint(1, 14) for _ in range(rng.randint(1, 4))]
    axes = _axes(rng, devices)
    lines = [
        f"x{n} = f32[2,{m}] parameter({n}) @[{{}}, {rng.choice([axes, axes, '{}', _axes(rng, devices)])}]@"
        for n, m in enumerate(sizes)
    ]
    names = ", ".join(f"x{n}" for n in range(len(sizes)))
    out = rng.choice([axes, axes, "{}"])
    made = f"ROOT r = f32[2,{sum(sizes)}] concatenate({names}), dimensions={{1}} @[{{}}, {out}]@"
    return "\n".join([*lines, made])


def _roll(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(2, 30), _axes(rng, devices)
    k = rng.randint(1, n - 1)
    return f"""
      x = f32[{n}] parameter(0) @[{axes}]@
      a = f32[{k}] slice(x), slice={{[{n - k}:{n}]}} @[{axes}]@
      b = f32[{n - k}] slice(x), slice={{[0:{n - k}]}} @[{axes}]@
      ROOT r = f32[{n}] concatenate(a, b), dimensions={{0}} @[{axes}]@"""


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
    n, axes = rng.randint(1, 30), _axes(rng, devices)
    text, m = _window(rng, n)
    op = rng.choice(["add", "max"])
    return f"""
      x = f32[2,{n}] parameter(0) @[{{}}, {axes}]@
      v = f32[] constant({"-inf" if op == "max" else rng.randint(0, 2)})
      ROOT r = f32[2,{m}] reduce-window(x, v), {_spelled("1/1/0_0/1/1", text)}, to_apply={op}
        @[{{}}, {rng.choice([axes, "{}"])}]@"""


def _cumulative(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), _axes(rng, devices)
    op, delay = rng.choice(["add", "max"]), rng.choice([0, 0, 1])
    low, high = n - 1 + delay, -delay
    if rng.random() < 0.5:
        low, high = high, low
    return f"""
      x = f32[{n},2] parameter(0) @[{axes}, {{}}]@
      v = f32[] constant({"-inf" if op == "max" else rng.randint(0, 2)})
      ROOT r = f32[{n},2] reduce-window(x, v), window={{size={n}x1 pad={low}_{high}x0_0}}, to_apply={op}
        @[{axes}, {{}}]@"""


KINDS: dict[str, Callable[[random.Random, int], str]] = {
    "slice": _slice,
    "reverse": _reverse,
    "pad": _pad,
    "concatenate": _concatenate,
    "roll": _roll,
    "reduce-window": _reduce_window,
    "cumulative": _cumulative,
}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", KINDS)
def test_random(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    devices = rng.choice(list(MESHES))
    _check(devices, KINDS[kind](rng, devices), seed)


def _permuted(module) -> int:
    """The elements that a device sends in collective-permutes; nothing else may be sent."""
    kinds = {i.opcode for i in module.entry.instructions if "all" in i.opcode or "reduce-scatter" in i.opcode}
    assert not kinds
    return sum(i.shape.num_elements for i in module.entry.instructions if i.opcode == "collective-permute")


def _live(devices: int, body: str):
    module = parse(_module(devices, body))
    made = agree(module, inputs_of(module))
    Dce().run(made, PassContext())
    return made


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        pytest.param(
            """
      a = f32[24] parameter(0) @[{'x','y'}]@
      b = f32[23] slice(a), slice={[1:24]} @[{'x','y'}]@
      c = f32[23] slice(a), slice={[0:23]} @[{'x','y'}]@
      ROOT d = f32[23] subtract(b, c) @[{'x','y'}]@""",
            1,
            id="difference of neighbours",
        ),
        pytest.param(
            """
      a = f32[24] parameter(0) @[{'x','y'}]@
      b = f32[3] slice(a), slice={[21:24]} @[{'x','y'}]@
      c = f32[21] slice(a), slice={[0:21]} @[{'x','y'}]@
      ROOT d = f32[24] concatenate(b, c), dimensions={0} @[{'x','y'}]@""",
            3,
            id="roll",
        ),
        pytest.param(
            """
      a = f32[24] parameter(0) @[{'x','y'}]@
      ROOT b = f32[12] slice(a), slice={[0:24:2]} @[{'x','y'}]@""",
            4,
            id="every second",
        ),
        pytest.param(
            """
      a = f32[24] parameter(0) @[{'x','y'}]@
      ROOT b = f32[24] reverse(a), dimensions={0} @[{'x','y'}]@""",
            3,
            id="reverse",
        ),
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
      a = f32[16] parameter(0) @[{}]@
      v = f32[] constant(1)
      ROOT b = f32[19] pad(a, v), padding=1_2 @[{'x','y'}]@""",
            0,
            id="pad of a whole array",
        ),
    ],
)
def test_elements_sent(body: str, rows: int) -> None:
    assert _permuted(_live(8, body)) <= rows

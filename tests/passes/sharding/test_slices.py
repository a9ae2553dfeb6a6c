"""Ops that move intervals of elements: random sizes, attributes, meshes and shardings, against the global program."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.passes.sharding.one_op import MESHES, check, permuted, random_axes, transfers


def _slice(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), random_axes(rng, devices)
    start = rng.randint(0, n - 1)
    limit, stride = rng.randint(start, n), rng.randint(1, 4)
    m = -(-(limit - start) // stride)
    out = rng.choice([axes, axes, "{}", random_axes(rng, devices)])
    return f"""
      x = f32[3,{n}] parameter(0) @[{{}}, {axes}]@
      ROOT r = f32[2,{m}] slice(x), slice={{[1:3], [{start}:{limit}:{stride}]}} @[{{}}, {out}]@"""


def _reverse(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), random_axes(rng, devices)
    return f"""
      x = s32[{n},2] parameter(0) @[{axes}, {{}}]@
      ROOT r = s32[{n},2] reverse(x), dimensions={{0,1}} @[{rng.choice([axes, "{}"])}, {{}}]@"""


def _pad(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(1, 30), random_axes(rng, devices)
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
    axes = random_axes(rng, devices)
    lines = [
        f"x{n} = f32[2,{m}] parameter({n}) @[{{}}, {rng.choice([axes, axes, '{}', random_axes(rng, devices)])}]@"
        for n, m in enumerate(sizes)
    ]
    names = ", ".join(f"x{n}" for n in range(len(sizes)))
    out = rng.choice([axes, axes, "{}"])
    made = f"ROOT r = f32[2,{sum(sizes)}] concatenate({names}), dimensions={{1}} @[{{}}, {out}]@"
    return "\n".join([*lines, made])


def _roll(rng: random.Random, devices: int) -> str:
    n, axes = rng.randint(2, 30), random_axes(rng, devices)
    k = rng.randint(1, n - 1)
    return f"""
      x = f32[{n}] parameter(0) @[{axes}]@
      a = f32[{k}] slice(x), slice={{[{n - k}:{n}]}} @[{axes}]@
      b = f32[{n - k}] slice(x), slice={{[0:{n - k}]}} @[{axes}]@
      ROOT r = f32[{n}] concatenate(a, b), dimensions={{0}} @[{axes}]@"""


def _dynamic_slice(rng: random.Random, devices: int) -> str:
    n, m, axes = rng.randint(1, 30), rng.randint(1, 5), random_axes(rng, devices)
    size, rows = rng.randint(1, n), rng.randint(1, m)
    t = rng.choice(["f32", "f32", "pred", "s8"])
    start = rng.choice(["s32", "s64", "u8"])
    return f"""
      x = {t}[{m},{n}] parameter(0) @[{{}}, {axes}]@
      a = {start}[] parameter(1) @[]@
      k = {start}[] constant({rng.randint(0, 12)})
      c = {start}[] multiply(a, k)
      b = {start}[] {rng.choice(["copy(c)", f"constant({rng.randint(0, 25)})"])}
      ROOT r = {t}[{rows},{size}] dynamic-slice(x, a, b), dynamic_slice_sizes={{{rows},{size}}}
        @[{{}}, {rng.choice([axes, "{}", "{}"])}]@"""


def _dynamic_update_slice(rng: random.Random, devices: int) -> str:
    n, m, axes = rng.randint(1, 30), rng.randint(1, 5), random_axes(rng, devices)
    size, rows = rng.randint(1, n), rng.randint(1, m)
    split = axes if rng.random() < 0.3 else "{}"
    other = rng.choice(["{'y'}", "{}"]) if devices == 8 and axes == "{'x'}" else "{}"
    return f"""
      x = f32[{m},{n}] parameter(0) @[{other}, {axes}]@
      u = f32[{rows},{size}] parameter(1) @[{{}}, {split}]@
      a = s32[] parameter(2) @[]@
      k = s32[] constant({rng.randint(-2, 25)})
      c = s32[] multiply(a, k)
      b = s32[] {rng.choice(["copy(c)", f"constant({rng.randint(-2, 25)})"])}
      ROOT r = f32[{m},{n}] dynamic-update-slice(x, u, a, b) @[{other}, {rng.choice([axes, "{}"])}]@"""


def _reshape(rng: random.Random, devices: int) -> str:
    factors = [rng.choice([1, 2, 2, 3, 3, 4, 5]) for _ in range(rng.randint(2, 5))]

    def cut() -> list[int]:
        """The factors multiplied in runs."""
        found = [1]
        for f in factors:
            if rng.random() < 0.5:
                found.append(1)
            found[-1] *= f
        return found

    def split(rank: int) -> str:
        found = ["{}"] * rank
        found[rng.randrange(rank)] = random_axes(rng, devices)
        return ", ".join(found)

    old, new = cut(), cut()
    return f"""
      x = f32[{",".join(map(str, old))}] parameter(0) @[{split(len(old))}]@
      ROOT r = f32[{",".join(map(str, new))}] reshape(x) @[{split(len(new))}]@"""


KINDS: dict[str, Callable[[random.Random, int], str]] = {
    "slice": _slice,
    "reverse": _reverse,
    "pad": _pad,
    "concatenate": _concatenate,
    "roll": _roll,
    "reshape": _reshape,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
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
      a = f32[24] parameter(0) @[{'x','y'}]@
      ROOT b = f32[6,4] reshape(a) @[{'x','y'}, {}]@""",
            6,
            id="reshape to other shares",
        ),
        pytest.param(
            """
      a = f32[16] parameter(0) @[{}]@
      v = f32[] constant(1)
      ROOT b = f32[19] pad(a, v), padding=1_2 @[{'x','y'}]@""",
            0,
            id="pad of a whole array",
        ),
        pytest.param(
            """
      x = f32[16,3] parameter(0) @[{'x','y'}, {}]@
      u = f32[1,3] parameter(1) @[{}, {}]@
      a = s32[] parameter(2) @[]@
      b = s32[] constant(0)
      ROOT r = f32[16,3] dynamic-update-slice(x, u, a, b) @[{'x','y'}, {}]@""",
            0,
            id="update of a row",
        ),
        pytest.param(
            """
      x = f32[16,3] parameter(0) @[{'x','y'}, {}]@
      u = f32[8,3] parameter(1) @[{'x','y'}, {}]@
      a = s32[] constant(0)
      ROOT r = f32[16,3] dynamic-update-slice(x, u, a, a) @[{'x','y'}, {}]@""",
            6,
            id="update that is split, from the beginning",
        ),
    ],
)
def test_elements_sent(body: str, elements: int) -> None:
    assert permuted(8, body) <= elements


def test_a_small_dynamic_slice_is_summed() -> None:
    sent = transfers(
        8,
        """
      x = f32[16,3] parameter(0) @[{'x','y'}, {}]@
      a = s32[] parameter(1) @[]@
      b = s32[] constant(0)
      ROOT r = f32[2,3] dynamic-slice(x, a, b), dynamic_slice_sizes={2,3} @[{}, {}]@""",
    )
    assert [(i.opcode, i.shape.dims) for i in sent] == [("all-reduce", (2, 3))]


def test_few_elements_of_many_shares_are_summed() -> None:
    sent = transfers(
        8,
        """
      x = f32[24,3] parameter(0) @[{'x','y'}, {}]@
      s = f32[1,3] slice(x), slice={[23:24], [0:3]} @[{'x','y'}, {}]@
      a = f32[1,3] abs(s) @[{'x','y'}, {}]@
      ROOT r = f32[1,3] copy(a) @[{}, {}]@""",
    )
    assert sorted((i.opcode, i.shape.dims) for i in sent) == [("all-reduce", (1, 3)), ("collective-permute", (1, 3))]

"""Numbers of devices, and what of programs for several devices has no code."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.compiling import compile
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.targets import libcuda

TARGETS = ("cpu", "sim:sm_90")


def module_of(head: str, body: str) -> Module:
    add = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
    return heron.parse(f"HloModule m{head}\n{add}\nENTRY main {{ {body} }}")


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_of_devices(target: str) -> None:
    head = ", replica_count=2, num_partitions=3"
    module = module_of(head, "r = u32[] replica-id() p = u32[] partition-id() ROOT t = (u32[], u32[]) tuple(r, p)")
    found = compile(module, target).run_devices([[]] * 6)
    assert [(int(r), int(p)) for r, p in found] == [(r, p) for r in range(2) for p in range(3)]


@pytest.mark.parametrize("target", TARGETS)
def test_one_device_is_number_0(target: str) -> None:
    module = module_of("", "a = u32[] partition-id() b = u32[] replica-id() ROOT r = u32[] add(a, b)")
    assert compile(module, target).run([])[0] == 0


@pytest.mark.parametrize("target", TARGETS)
def test_where_devices_do_not_matter(target: str) -> None:
    module = module_of(", num_partitions=4", "a = u32[] partition-id() z = f32[] constant(2) ROOT r = f32[] negate(z)")
    assert np.array_equal(compile(module, target).run_devices([[]] * 4), [[-2]] * 4)


def test_groups_of_differing_size() -> None:
    head, groups = ", replica_count=4", "replica_groups={{0,3,2},{1}}"
    for size in (3, 4000):
        body = f"x = f32[{size}] parameter(0) ROOT r = f32[{size}] all-reduce(x), {groups}, to_apply=add"
        rows = [[np.full(size, 10**n, np.float32)] for n in range(4)]
        found = compile(module_of(head, body)).run_devices(rows)
        assert [set(out.tolist()) for (out,) in found] == [{1101}, {10}, {1101}, {1101}]
    body = "x = f32[6] parameter(0) ROOT r = f32[2] reduce-scatter(x), dimensions={0}, to_apply=add, "
    with pytest.raises(HeronError):
        compile(module_of(head, body + groups))


def test_arguments_that_are_parts_of_arrays() -> None:
    """Kernels read vectors, which must not begin anywhere."""
    body = "x = f32[37] parameter(0) y = f32[37] add(x, x) ROOT z = f32[37] multiply(y, x)"
    one, several = (compile(module_of(head, body)) for head in ("", ", num_partitions=2"))
    x = np.arange(40, dtype=np.float32)
    for n in range(3):
        part = x[n : n + 37]
        for _ in range(3):
            assert (one(part) == 2 * part * part).all()
            assert (several.run_devices([[part], [part]])[1][0] == 2 * part * part).all()


def test_a_gpu_program_compiles_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "x = f32[4] parameter(0) ROOT r = f32[4] all-reduce(x), replica_groups={}, to_apply=add"
    program = compile(module_of(", replica_count=2", body), "sm_90")
    assert program.devices == 2 and "all-reduce" in program.stage("thunks")
    monkeypatch.setattr(libcuda, "library", lambda: None)
    with pytest.raises(HeronError, match="RUN030"):
        program.run_devices([[np.ones(4, np.float32)]] * 2)

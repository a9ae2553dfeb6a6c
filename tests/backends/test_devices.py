"""Programs for several devices: refused where the device matters, compiled where it does not."""

from __future__ import annotations

import pytest

import heron
from heron.compiling import compile
from heron.errors import HeronError
from heron.hlo.ir.module import Module

TARGETS = ("cpu", "sim:sm_90")


def module_of(head: str, body: str) -> Module:
    add = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
    return heron.parse(f"HloModule m{head}\n{add}\nENTRY main {{ {body} }}")


REFUSED = [
    (", num_partitions=4", "ROOT r = u32[] partition-id()", "partition-id asks which device", "num_partitions=4"),
    (", replica_count=2", "ROOT r = u32[] replica-id()", "replica-id asks which device", "replica_count=2"),
    (", replica_count=2", "x = u32[] replica-id() y = u32[3] broadcast(x), dimensions={} ROOT r = u32[3] add(y, y)",
     "replica-id asks which device", "2 devices"),
    (", replica_count=2", "x = f32[4] parameter(0) ROOT r = f32[4] all-reduce(x), replica_groups={}, to_apply=add",
     "all-reduce needs the other devices", "2 devices"),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("head", "body", "what", "why"), REFUSED)
def test_refusals(target: str, head: str, body: str, what: str, why: str) -> None:
    with pytest.raises(HeronError, match="GEN012") as error:
        compile(module_of(head, body), target)
    assert what in error.value.what and target in error.value.what
    assert why in (error.value.why or "") and "heron eval" in (error.value.hint or "")


@pytest.mark.parametrize("target", TARGETS)
def test_one_device_is_number_0(target: str) -> None:
    module = module_of("", "a = u32[] partition-id() b = u32[] replica-id() ROOT r = u32[] add(a, b)")
    assert compile(module, target).run([])[0] == 0


def test_where_devices_do_not_matter() -> None:
    module = module_of(", num_partitions=4", "a = u32[] partition-id() z = f32[] constant(2) ROOT r = f32[] negate(z)")
    assert compile(module, "cpu").run([])[0] == -2

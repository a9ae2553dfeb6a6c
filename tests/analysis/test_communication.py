"""The time of collectives over the links of a machine, against figures worked out by hand."""

from __future__ import annotations

import dataclasses

import pytest

from heron import targets
from heron.analysis.cost.communication import WAYS, communicates, link_seconds, pace, rings
from heron.analysis.cost.step import step_cost
from heron.analysis.sharding.cost import moved_bytes
from heron.analysis.sharding.links import weighted
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.hlo.sharding.mesh import Mesh
from heron.hlo.text import parse
from heron.passes.collectives.model.combining import MOST_BYTES, combined_bytes
from heron.targets import Link

NEAR, FAR = Link("near", 4, 100, 1.0), Link("far", 0, 10, 5.0)
MACHINE = dataclasses.replace(targets.get("sm_90"), links=(NEAR, FAR), launch_seconds=0.0)


def collective(opcode: str, shape: str, result: str, groups: str, devices: int = 16, more: str = ""):
    reducer = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }"
    module = parse(
        f"HloModule m, num_partitions={devices}\n{reducer}\n"
        f"ENTRY e {{\n  x = {shape} parameter(0)\n  ROOT c = {result} {opcode}(x), channel_id=1, {groups}{more}\n}}"
    )
    return module, module.entry.root


GLOBAL = ", use_global_device_ids=true"
CASES = {
    # 4 devices of a domain: 3 rounds of a second, 3/4 of 400 bytes at 100 a second
    "near gather": (
        "all-gather",
        "f32[25]",
        "f32[100]",
        "replica_groups=[4,4]<=[16]",
        ", dimensions={0}" + GLOBAL,
        6.0,
    ),
    # one device of each domain: 3 rounds of 5 seconds, 3/4 of 400 bytes at 10
    "far gather": (
        "all-gather",
        "f32[25]",
        "f32[100]",
        "replica_groups=[4,4]<=[4,4]T(1,0)",
        ", dimensions={0}" + GLOBAL,
        45.0,
    ),
    # 2 of each of 2 domains: halves inside (1 s + 200 B), the other half of what each has outside (5 s + 100 B)
    "both gather": (
        "all-gather",
        "f32[25]",
        "f32[100]",
        "replica_groups={{0,1,4,5}}",
        ", dimensions={0}" + GLOBAL,
        1 + 2 + 5 + 10,
    ),
    # the sum of a reduce-scatter and an all-gather of the same
    "both sum": ("all-reduce", "f32[100]", "f32[100]", "replica_groups={{0,1,4,5}}", ", to_apply=add" + GLOBAL, 36.0),
    "near permute": ("collective-permute", "f32[100]", "f32[100]", "source_target_pairs={{0,1},{1,2}}", "", 1 + 4),
    "far permute": ("collective-permute", "f32[100]", "f32[100]", "source_target_pairs={{0,1},{3,4}}", "", 5 + 40),
    "no permute": ("collective-permute", "f32[100]", "f32[100]", "source_target_pairs={{0,0}}", "", 0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_seconds_by_links(name: str):
    opcode, shape, result, groups, more, seconds = CASES[name]
    module, op = collective(opcode, shape, result, groups, more=more)
    assert link_seconds(op, module, MACHINE) == pytest.approx(seconds)


def test_the_slowest_group_counts():
    more = ", dimensions={0}" + GLOBAL
    module, op = collective("all-gather", "f32[25]", "f32[50]", "replica_groups={{0,1},{3,4}}", more=more)
    assert pace(op, module, MACHINE).links == "far"
    assert link_seconds(op, module, MACHINE) == pytest.approx(5 + 10)


def test_rings_of_three_levels():
    links = (NEAR, Link("rack", 8, 50, 2.0), FAR)
    found = [(ring.link.name, ring.members) for ring in rings(range(32), links)]
    assert found == [("near", 4), ("rack", 2), ("far", 4)]
    assert rings([5], links) == ()


def test_collectives_over_slow_links_are_combined_further():
    more = ", dimensions={0}" + GLOBAL
    near = collective("all-gather", "f32[25]", "f32[100]", "replica_groups=[4,4]<=[16]", more=more)
    far = collective("all-gather", "f32[25]", "f32[100]", "replica_groups=[4,4]<=[4,4]T(1,0)", more=more)
    # 16 latencies of 3 rounds: 48 s at 100 bytes a second, 240 s at 10, of which 3/4 is sent
    assert combined_bytes(near[1], near[0], MACHINE) == 6400
    assert combined_bytes(far[1], far[0], MACHINE) == 3200
    assert combined_bytes(near[1], near[0], targets.get("sm_90")) < MOST_BYTES


def test_every_machine_has_a_link_to_all_devices():
    for target in targets.all_targets():
        assert target.links[-1].devices == 0
        sizes = [link.devices for link in target.links[:-1]]
        assert sizes == sorted(sizes) and all(size > 1 for size in sizes)
        assert all(link.bandwidth > 0 and link.seconds > 0 for link in target.links)


def test_atoms_that_leave_a_domain_weigh_more():
    mesh = AtomicMesh.of(Mesh((("data", 4), ("model", 4))))
    assert weighted(mesh, MACHINE).weights == (10.0, 10.0, 1.0, 1.0)
    other = AtomicMesh.of(Mesh((("data", 4), ("model", 4)), tuple(d % 4 * 4 + d // 4 for d in range(16))))
    assert weighted(other, MACHINE).weights == (1.0, 1.0, 10.0, 10.0)
    assert weighted(AtomicMesh.of(Mesh((("x", 4),))), MACHINE).weights == ()
    assert weighted(mesh, None) is mesh and mesh.latency == 0
    assert weighted(mesh, MACHINE).latency == MACHINE.links[0].bandwidth * MACHINE.links[0].seconds


def test_bytes_are_worth_the_time_of_their_links():
    """A gather along both axes: 3/4 of the array inside the domain, 3/4 of a fourth of it between domains."""
    mesh = weighted(AtomicMesh.of(Mesh((("data", 4), ("model", 4)))), MACHINE)
    split, whole = TensorSharding.closed([(0, 1, 2, 3)]), TensorSharding.whole(1)
    worth = moved_bytes(mesh.sizes, mesh.weights, (1600,), 1.0, split, whole)
    assert worth == pytest.approx(1200 + 300 * 10)
    assert moved_bytes(mesh.sizes, (), (1600,), 1.0, split, whole) == pytest.approx(1500)


LOOP = """HloModule looped, num_partitions=4, is_scheduled=true

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }

body {
  p = (s32[], f32[100]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[100] get-tuple-element(p), index=1
  s = f32[100] all-reduce-start(x), channel_id=1, replica_groups=[1,4]<=[4], to_apply=add, use_global_device_ids=true
  one = s32[] constant(1)
  m = s32[] add(n, one)
  d = f32[100] all-reduce-done(s)
  ROOT t = (s32[], f32[100]) tuple(m, d)
}

condition {
  p = (s32[], f32[100]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  most = s32[] constant(5)
  ROOT less = pred[] compare(n, most), direction=LT
}

ENTRY e {
  x = f32[100] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[100]) tuple(zero, x)
  w = (s32[], f32[100]) while(t), condition=condition, body=body
  ROOT r = f32[100] get-tuple-element(w), index=1
}
"""


def test_exposed_communication_of_a_loop():
    """Five rounds, each a sum of 12 seconds: 6 rounds of 1 s and 2 * 3/4 of 400 bytes. An addition hides next to
    nothing of it."""
    module = parse(LOOP)
    step = step_cost(module, MACHINE)
    (exchange,) = step.exchanges
    assert (exchange.runs, exchange.known, exchange.pace.members) == (5, True, 4)
    assert exchange.seconds == pytest.approx(12.0) and exchange.wire_bytes == 600
    assert step.communication == pytest.approx(60.0)
    assert step.exposed == pytest.approx(60.0, rel=1e-6) and step.exposed < step.communication
    assert step.seconds == pytest.approx(60.0, rel=1e-6) and step.compute > 0


def test_transfers_behind_work_are_not_exposed():
    heavy = "one = s32[] constant(1)\n  big = f32[8192,8192] iota(), iota_dimension=0\n"
    work = "  y = f32[8192,8192] dot(big, big), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    keep = "  k = f32[] slice(y), slice={[0:1], [0:1]}\n"
    text = LOOP.replace("one = s32[] constant(1)\n", heavy + work + keep).replace("f32[] slice", "f32[1,1] slice")
    links = (dataclasses.replace(NEAR, bandwidth=10**12, seconds=1e-6), FAR)
    step = step_cost(parse(text), dataclasses.replace(MACHINE, links=links))
    assert step.exposed == 0.0 and step.communication > 0


def test_every_way_is_told_apart():
    assert {opcode for opcode, way in WAYS.items() if way.shrinks} == {"all-reduce", "all-gather", "reduce-scatter"}
    module, op = collective("all-reduce", "f32[4]", "f32[4]", "replica_groups={{0,1}}", more=", to_apply=add" + GLOBAL)
    assert communicates(op) is op and communicates(module.entry.parameters[0]) is None

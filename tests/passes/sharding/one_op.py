"""Modules of one op on random meshes and shardings, and the transfers of their partitioned forms."""

from __future__ import annotations

import random

from heron.analysis.cost.communication import WAYS
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.passes.framework.context import PassContext
from heron.passes.simplify.dce import Dce
from tests.passes.sharding.devices import agree, inputs_of, sharded

MESHES = {2: "'x'=2", 4: "'x'=2,'y'=2", 8: "'x'=2,'y'=4", 6: "'x'=3,'y'=2"}
AXES = {2: ["{'x'}"], 4: ["{'x'}", "{'y'}", "{'x','y'}"], 8: ["{'x'}", "{'y'}", "{'y','x'}"], 6: ["{'x'}", "{'x','y'}"]}
SUM = """
  add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
  add_s32 { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
  ge_f32 { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
  ge_s32 { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
  rows {
    x = f32[2] parameter(0)
    c = f32[2] parameter(1)
    s = f32[2] add(x, c)
    ROOT r = (f32[2], f32[2]) tuple(s, s)
  }
  largest {
    a = f32[] parameter(0)
    k = s32[] parameter(1)
    b = f32[] parameter(2)
    n = s32[] parameter(3)
    gt = pred[] compare(a, b), direction=GT
    eq = pred[] compare(a, b), direction=EQ
    lt = pred[] compare(k, n), direction=LT
    tie = pred[] and(eq, lt)
    first = pred[] or(gt, tie)
    value = f32[] select(first, a, b)
    place = s32[] select(first, k, n)
    ROOT r = (f32[], s32[]) tuple(value, place)
  }
  max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
"""


def random_axes(rng: random.Random, devices: int) -> str:
    """The text of axes that may split one dimension."""
    return rng.choice(AXES[devices])


def module_of(devices: int, body: str) -> str:
    """The text of a program of several devices, with the computations `add` and `max`."""
    text = f"mesh[{MESHES[devices]}]\nHloModule m, num_partitions={devices}\n{SUM}\nENTRY main {{\n{body}\n}}"
    return sharded(text)


def check(devices: int, body: str, seed: int = 0) -> Module:
    """The partitioned program of a body, whose values are those of the global one."""
    module = parse(module_of(devices, body))
    return agree(module, inputs_of(module, seed))


def transfers(devices: int, body: str) -> list[Instruction]:
    """The collectives of the partitioned program, those that nothing uses left out."""
    made = check(devices, body)
    Dce().run(made, PassContext())
    return [i for i in made.entry.instructions if i.opcode in WAYS]


def permuted(devices: int, body: str) -> int:
    """The elements that a device sends in collective-permutes, which are the only collectives."""
    sent = transfers(devices, body)
    assert {i.opcode for i in sent} <= {"collective-permute"}
    return sum(i.shape.num_elements for i in sent)

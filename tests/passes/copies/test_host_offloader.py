"""Arrays that a program sends to the host's memory: where they are, who copies them, and that no value changes."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest

import heron
from heron.backends.compiler import Compilation
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.options import Options
from heron.runtime.cuda.array import put
from heron.runtime.cuda.device import device as gpu
from heron.runtime.cuda.driver import CallFailed
from heron.targets import get
from heron.trace import Trace
from tests.backends.test_markers import OFFLOADED
from tests.gpu.reach import PROGRAMS
from tests.rehearsal.compiling import compile, rehearsed

TO_HOST = 'custom-call(x), custom_call_target="MoveToHost"'
FROM_HOST = 'custom-call(h), custom_call_target="MoveToDevice"'


def entry(*lines: str, more: str = "") -> str:
    """A program whose x is an array of 32 numbers, and whose h waits on the host."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m\n\n{more}\nENTRY main {{\n  x = f32[32] parameter(0)\n  h = f32[32] {TO_HOST}\n{body}\n}}\n"


BRANCHES = """up {
  a = f32[32] parameter(0)
  b = f32[32] custom-call(a), custom_call_target="MoveToDevice"
  ROOT c = f32[32] add(b, b)
}

kept {
  ROOT a = f32[32] parameter(0)
}

"""
#: programs, and the bytes that each keeps on the host
WAYS = {
    "back": (entry(f"d = f32[32] {FROM_HOST}", "ROOT r = f32[32] negate(d)"), 128),
    # JAX's own call, in its three forms
    "annotated": (
        entry("d = f32[32] custom-call(h), custom_call_target=ANNOTATE", "ROOT r = f32[32] negate(d)")
        .replace('"MoveToHost"', 'ANNOTATE, frontend_attributes={_xla_buffer_placement="pinned_host"}')
        .replace("ANNOTATE", '"annotate_device_placement", custom_call_has_side_effect=true'),
        128,
    ),
    # as a compiler prints it
    "copied": (
        entry("d = f32[32]{0} copy(h)", "ROOT r = f32[32] negate(d)").replace(
            f"h = f32[32] {TO_HOST}", "h = f32[32]{0:S(5)} copy(x)"
        ),
        128,
    ),
    # who computes with it reads a copy, each its own
    "computed with": (entry("a = f32[32] negate(h)", "ROOT r = f32[32] multiply(a, h)"), 128),
    # what a program gives is in the device's memory
    "result": (entry("n = f32[32] negate(x)", "ROOT r = (f32[32], f32[32]) tuple(h, n)"), 128),
    "sent twice": (
        entry(f"g = f32[32] {TO_HOST.replace('x', 'h')}", f"d = f32[32] {FROM_HOST}", "ROOT r = f32[32] add(d, g)"),
        128,
    ),
    "never sent": (entry("ROOT r = f32[32] negate(x)"), 0),
    "taken back from the device": (
        entry('d = f32[32] custom-call(x), custom_call_target="MoveToDevice"', "ROOT r = f32[32] add(d, h)"),
        128,
    ),
    # kernels take slices, and only those, from where the array is
    "slices": (
        entry(
            "i = s32[] parameter(1)",
            "s = f32[8] dynamic-slice(h, i), dynamic_slice_sizes={8}",
            'd = f32[8] custom-call(s), custom_call_target="MoveToDevice"',
            "ROOT r = f32[8] negate(d)",
        ),
        128,
    ),
    # an array that begins as zeros is written on the host, and there alone
    "rows": (
        entry(
            "z = f32[] constant(0)",
            "zeros = f32[4,32] broadcast(z), dimensions={}",
            "row = f32[1,32] reshape(h)",
            "i = s32[] parameter(1)",
            "o = s32[] constant(0)",
            "all = f32[4,32] dynamic-update-slice(zeros, row, i, o)",
            'd = f32[4,32] custom-call(all), custom_call_target="MoveToDevice"',
            "ROOT r = f32[4,32] negate(d)",
        ),
        512,
    ),
    # an argument is the caller's: it is copied before it is written into
    "rows of an argument": (
        entry(
            "given = f32[4,32] parameter(1)",
            "row = f32[1,32] reshape(h)",
            "i = s32[] parameter(2)",
            "o = s32[] constant(0)",
            "all = f32[4,32] dynamic-update-slice(given, row, i, o)",
            'd = f32[4,32] custom-call(all), custom_call_target="MoveToDevice"',
            "ROOT r = f32[4,32] negate(d)",
        ),
        512,
    ),
    "branches": (
        entry(
            "p = pred[] parameter(1)",
            f"d = f32[32] {FROM_HOST}",
            "c = f32[32] conditional(p, h, h), true_computation=up, false_computation=kept",
            "ROOT r = f32[32] add(c, d)",
            more=BRANCHES,
        ),
        128,
    ),
    "a loop's state": (OFFLOADED, 16),
}


def arguments(module: Module) -> list[np.ndarray]:
    r = np.random.default_rng(0)
    shapes = [p.shape for p in module.entry.parameters]
    small = [np.array(1, s.element_type.dtype) if not s.rank else None for s in shapes]
    return [
        r.standard_normal(s.dims).astype(np.float32) if a is None else a for s, a in zip(shapes, small, strict=True)
    ]


def on_host(module: Module) -> list[Instruction]:
    return [i for i in module.instructions() if any(s.is_on_host for _, s in i.shape.leaves())]


@pytest.mark.parametrize("way", sorted(WAYS))
def test_values_wait_in_pinned_memory_and_do_not_change(way: str) -> None:
    text, wanted = WAYS[way]
    module = heron.parse(text)
    given = arguments(module)
    expected = heron.evaluate(module, *given)
    with rehearsed() as recorder:
        made = compile(module, recorder)
        assert made.assignment.host_bytes >= wanted > 0 or made.assignment.host_bytes == wanted
        for _ in range(3):
            for a, b in zip(made.run(given), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)
        pinned = made.assignment.host_bytes > 0
        made.unload()
        assert recorder.count("cuMemFreeHost") == pinned


@pytest.mark.parametrize("way", sorted(WAYS))
def test_nothing_but_copies_slices_and_updates_reaches_the_host(way: str) -> None:
    module = Compilation(heron.parse(WAYS[way][0]), get("sm_90"), Options(), Trace()).scheduled
    assert not [i for i in module.instructions() if i.opcode == "custom-call"]
    there = [i for i in on_host(module) if i.opcode not in ("tuple", "while", "conditional")]
    for reader in {u for i in there for u in i.users}:
        passes = reader.opcode in ("copy", "tuple", "get-tuple-element", "bitcast", "while", "conditional")
        inside = {i.opcode for i in reader.calls.instructions} if reader.opcode == "fusion" else {reader.opcode}
        assert passes or inside & {"dynamic-slice", "dynamic-update-slice"}, str(reader)
    assert not any(s.is_on_host for _, s in module.entry.root.shape.leaves())


def test_states_of_layers_take_no_memory_of_the_device() -> None:
    """The states that wait for the loop that goes back are most of the memory of a step of training."""
    module = PROGRAMS["offloaded_layers"].module(False)
    made = heron.compile(module, "sm_90")
    assert made.assignment.host_bytes >= 300 * 64 * 4
    assert made.memory.temp < 10_000
    on_cpu = heron.compile(module, "cpu").assignment
    assert on_cpu.temp_bytes >= 300 * 64 * 4, "on the CPU all memory is the host's"


def test_addresses_of_arguments_change_and_those_on_the_host_stay() -> None:
    module = heron.parse(WAYS["back"][0])
    x = np.arange(32, dtype=np.float32)
    with rehearsed() as recorder:
        made = compile(module, recorder)
        kept = [made.on_device(put(x + n, made.device)) for n in range(8)]
        for n, (y,) in enumerate(kept):
            np.testing.assert_array_equal(y.numpy(), -(x + n))
        assert made.load().facts()["refused"] == []
        assert recorder.count("cuGraphExecMemcpyNodeSetParams")


def test_no_pinned_memory_is_an_error_that_names_it() -> None:
    module = heron.parse(WAYS["back"][0])
    x = np.arange(32, dtype=np.float32)
    with rehearsed() as recorder:
        made = compile(module, recorder)
        put(x, gpu())  # staging has its blocks
        recorder.fail["cuMemHostAlloc"] = (2, 0)
        with pytest.raises(HeronError, match="no pinned memory of the host for 128 bytes") as caught:
            made.run([x])
        assert caught.value.code == "RUN043"
        np.testing.assert_array_equal(made.run([x])[0], -x)


def test_the_rehearsed_driver_refuses_memory_of_the_host_that_is_not_pinned() -> None:
    with rehearsed() as recorder:
        device = gpu()
        far, block = device.memory.allocate(64), (ctypes.c_uint8 * 64)()
        device.driver.cuMemcpyAsync(far, ctypes.addressof(block), 64, device.stream)
        with pytest.raises(CallFailed, match="700|ILLEGAL_ADDRESS"):
            device.synchronize()
        assert not recorder.problems
        device.reset()


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize(
    ("operands", "shape"), [("x, y", "f32[8]"), ("", "f32[8]"), ("x", "f32[4]"), ("x", "s32[8]")], ids=str
)
def test_calls_of_that_name_that_move_no_array_are_refused(operands: str, shape: str, target: str) -> None:
    text = f"""HloModule m
    ENTRY e {{
      x = f32[8] parameter(0)
      y = f32[8] parameter(1)
      h = {shape} custom-call({operands}), custom_call_target="MoveToHost"
      ROOT n = {shape} negate(h)
    }}"""
    with pytest.raises(HeronError, match="MoveToHost"):
        heron.compile(heron.parse(text), target)


@pytest.mark.parametrize("form", ["called", "copied", "looped"])
@pytest.mark.parametrize("orders", list(itertools.product(("{1,0}", "{0,1}"), repeat=4)), ids="".join)
def test_the_order_in_memory_may_change_on_either_side_of_a_move(form: str, orders: tuple[str, ...]) -> None:
    """A move copies bytes as they lie, so what changes their order is done on the device, by nobody's oversight."""
    given, there, back, result = orders
    lines = {
        "called": f"""h = f32[4,6]{there} custom-call(c), custom_call_target="MoveToHost"
  d = f32[4,6]{back} custom-call(h), custom_call_target="MoveToDevice\"""",
        "copied": f"h = f32[4,6]{there[:-1]}:S(5)}} copy(c)\n  d = f32[4,6]{back} copy(h)",
        "looped": f"""h = f32[4,6]{there} custom-call(c), custom_call_target="MoveToHost"
  z = s32[] constant(0)
  t = (s32[], f32[4,6]{there}) tuple(z, h)
  w = (s32[], f32[4,6]{there}) while(t), condition=is_less, body=step
  g = f32[4,6]{there} get-tuple-element(w), index=1
  d = f32[4,6]{back} custom-call(g), custom_call_target="MoveToDevice\"""",
    }[form]
    module = parse(f"""HloModule m, entry_computation_layout={{(f32[4,6]{given})->f32[4,6]{result}}}
is_less {{ s = (s32[], f32[4,6]{there}) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(n, three), direction=LT }}
step {{ s = (s32[], f32[4,6]{there}) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  m = s32[] add(n, one)
  h = f32[4,6]{there} get-tuple-element(s), index=1
  ROOT t = (s32[], f32[4,6]{there}) tuple(m, h) }}
ENTRY main {{
  p = f32[4,6]{given} parameter(0)
  c = f32[4,6]{there} negate(p)
  {lines}
  ROOT r = f32[4,6]{result} copy(d)
}}""")
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(np.asarray(heron.compile(module, target="sim:sm_90")(x)), -x)

"""Collectives on devices of the CPU and on simulated GPUs, against the evaluator: every op, type, reducer and form."""

from __future__ import annotations

import functools
import pathlib

import numpy as np
import pytest

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate_devices
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import array
from heron.hlo.ir.types import F32, by_name
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.runtime.collectives.spread import Array, Spread

#: groups of all devices, and of two each
GROUPS = {
    "ALL": "channel_id=1, replica_groups={{%s}}, use_global_device_ids=true",
    "TWO": "channel_id=1, replica_groups={{0,3},{2,1}}, use_global_device_ids=true",
}


def reducer(t: str, op: str = "add") -> str:
    return f"f {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT s = {t}[] {op}(a, b) }}\n"


def module_of(body: str, before: str = "", n: int = 4) -> Module:
    """A program on n devices; ``ALL`` and ``TWO`` in its text stand for `GROUPS`."""
    text = f"HloModule m, num_partitions={n}\n{before}ENTRY main {{ {body} }}"
    for name, groups in GROUPS.items():
        text = text.replace(name, groups.replace("%s", ",".join(map(str, range(n)))))
    return heron.parse(text)


def inputs_of(module: Module, seed: int = 0) -> list[list[np.ndarray]]:
    """Small integers for each device: their sums are exact."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(module.num_partitions):
        row = []
        for p in module.entry.parameters:
            values = random.integers(0, 2 if p.shape.element_type.name in ("pred", "u1", "s1") else 3, p.shape.dims)
            row.append(values.astype(p.shape.element_type.dtype))
        rows.append(row)
    return rows


def agree(module: Module, target: str = "cpu", options: heron.Options | None = None) -> None:
    inputs = inputs_of(module)
    program = heron.compile(module, target, options)
    wanted = evaluate_devices(module, inputs)
    for _ in range(2):
        found = program.run_devices(inputs)
        for device, (got, want) in enumerate(zip(found, wanted, strict=True)):
            for n, (g, w) in enumerate(zip(got, want, strict=True)):
                assert g.dtype == w.dtype and g.shape == w.shape
                # but for zeros' signs, which the order of a sum decides
                assert np.array_equal(g, w), f"output {n} of device {device}"


FORMS = {
    "all-reduce": "x = f32[3,5] parameter(0) ROOT r = f32[3,5] all-reduce(x), ALL, to_apply=f",
    "all-reduce in groups": "x = f32[3,5] parameter(0) ROOT r = f32[3,5] all-reduce(x), TWO, to_apply=f",
    "all-reduce of long arrays": "x = f32[40,501] parameter(0) ROOT r = f32[40,501] all-reduce(x), ALL, to_apply=f",
    "all-reduce in place": """x = f32[40,501] parameter(0)
        y = f32[40,501] negate(x)
        r = f32[40,501] all-reduce(y), ALL, to_apply=f
        ROOT z = f32[40,501] negate(r)""",
    "all-reduce of several": """x = f32[3,5] parameter(0)
        y = f32[7000] parameter(1)
        z = f32[] parameter(2)
        ROOT r = (f32[3,5], f32[7000], f32[]) all-reduce(x, y, z), ALL, to_apply=f""",
    "all-reduce of several types": """x = f32[3,5] parameter(0)
        y = s32[70] parameter(1)
        z = bf16[9000] parameter(2)
        ROOT r = (f32[3,5], s32[70], bf16[9000]) all-reduce(x, y, z), ALL, to_apply=f""",
    "all-reduce begun early": """x = f32[3,5] parameter(0)
        s = f32[3,5] all-reduce-start(x), ALL, to_apply=f
        y = f32[3,5] negate(x)
        d = f32[3,5] all-reduce-done(s)
        ROOT r = f32[3,5] add(d, y)""",
    "all-gather": "x = f32[3,5] parameter(0) ROOT r = f32[3,20] all-gather(x), ALL, dimensions={1}",
    "all-gather in groups": "x = f32[300,5] parameter(0) ROOT r = f32[600,5] all-gather(x), TWO, dimensions={0}",
    "all-gather of several": """x = f32[3,5] parameter(0)
        y = f32[4,2] parameter(1)
        t = (f32[12,5], f32[16,2]) all-gather(x, y), ALL, dimensions={0}
        ROOT g = f32[16,2] get-tuple-element(t), index=1""",
    "all-gather begun early": """x = f32[3,5] parameter(0)
        s = (f32[3,5], f32[12,5]) all-gather-start(x), ALL, dimensions={0}
        ROOT d = f32[12,5] all-gather-done(s)""",
    "all-gather by columns": """x = f32[3,5]{0,1} parameter(0)
        ROOT r = f32[12,5]{0,1} all-gather(x), ALL, dimensions={0}""",
    "reduce-scatter": "x = f32[8,5] parameter(0) ROOT r = f32[2,5] reduce-scatter(x), ALL, dimensions={0}, to_apply=f",
    "reduce-scatter inside": """x = f32[6,4,900] parameter(0)
        ROOT r = f32[6,2,900] reduce-scatter(x), TWO, dimensions={1}, to_apply=f""",
    "all-to-all": """x = f32[3,8] parameter(0)
        ROOT r = f32[3,8] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}""",
    "all-to-all of long arrays": """x = f32[3,8000] parameter(0)
        ROOT r = f32[3,8000] all-to-all(x), channel_id=1, replica_groups={{3,1},{0,2}}, dimensions={1}""",
    "all-to-all of a tuple": """x = f32[3] parameter(0)
        y = f32[3] parameter(1)
        ROOT r = (f32[3], f32[3]) all-to-all(x, y), channel_id=1, replica_groups={{3,1},{0,2}}""",
    "collective-permute": """x = f32[3] parameter(0)
        ROOT r = f32[3] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{3,0}}""",
    "collective-permute of several": """x = f32[3] parameter(0)
        y = s8[7000] parameter(1)
        ROOT r = (f32[3], s8[7000]) collective-permute(x, y), channel_id=1, source_target_pairs={{0,1},{1,0}}""",
    "collective-permute begun early": """x = f32[3] parameter(0)
        s = (f32[3], f32[3], u32[], u32[]) collective-permute-start(x), channel_id=1, source_target_pairs={{0,1},{1,0}}
        ROOT d = f32[3] collective-permute-done(s)""",
    "collective-broadcast": """x = f32[3] parameter(0)
        ROOT r = f32[3] collective-broadcast(x), channel_id=1, replica_groups={{2,1},{0,3}}""",
    "partition-id": """p = u32[] partition-id()
        b = u32[3] broadcast(p), dimensions={}
        i = u32[3] iota(), iota_dimension=0
        ROOT r = u32[3] add(b, i)""",
    "nothing": "x = f32[0,5] parameter(0) ROOT r = f32[0,5] all-reduce(x), ALL, to_apply=f",
}


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str, target: str) -> None:
    agree(module_of(FORMS[form], reducer("f32")), target)


TYPES = (
    "pred s8 u8 s16 u16 s32 u32 s64 u64 f16 bf16 f32 f64 c64 c128 f8e4m3fn f8e5m2 s4 u4"
).split()  # fmt: skip


@pytest.mark.parametrize("size", [5, 9001])
@pytest.mark.parametrize("t", TYPES)
def test_types(t: str, size: int) -> None:
    op = "or" if t == "pred" else "add"
    body = f"x = {t}[{size}] parameter(0) a = {t}[{size}] all-reduce(x), ALL, to_apply=f "
    body += f"g = {t}[{4 * size}] all-gather(x), ALL, dimensions={{0}} "
    body += f"ROOT r = ({t}[{size}], {t}[{4 * size}]) tuple(a, g)"
    agree(module_of(body, reducer(t, op)))


@pytest.mark.parametrize("t", ["s32", "bf16", "f32"])
@pytest.mark.parametrize("op", ["add", "multiply", "minimum", "maximum", "and", "or", "xor"])
def test_reducers(op: str, t: str) -> None:
    if op in ("and", "or", "xor") and by_name(t).is_float:
        pytest.skip("of bits")
    body = f"x = {t}[2500] parameter(0) ROOT r = {t}[2500] all-reduce(x), ALL, to_apply=f"
    agree(module_of(body, reducer(t, op)))


def test_any_reducer() -> None:
    computation = """f {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      c = f32[] add(a, b)
      h = f32[] constant(8)
      ROOT m = f32[] minimum(c, h)
    }
    """
    body = "x = f32[2500] parameter(0) ROOT r = f32[2500] all-reduce(x), ALL, to_apply=f"
    agree(module_of(body, computation))


def test_sums_are_in_the_order_of_ranks() -> None:
    body = "x = f32[9000] parameter(0) ROOT r = f32[9000] all-reduce(x), ALL, to_apply=f"
    program = heron.compile(module_of(body, reducer("f32"), n=4))
    rows = np.random.default_rng(1).normal(size=(4, 9000)).astype(np.float32)
    wanted = functools.reduce(lambda a, b: a + b, rows)
    for _ in range(5):
        for (found,) in program.run_devices([[r] for r in rows]):
            assert found.tobytes() == wanted.tobytes()


LOOP = """
f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
body {
  p = (s32[], f32[6]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[6] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  sum = f32[6] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=f
  moved = f32[6] collective-permute(sum), channel_id=2, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  ROOT t = (s32[], f32[6]) tuple(next, moved)
}
condition {
  p = (s32[], f32[6]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT
}
yes { x = f32[6] parameter(0) ROOT r = f32[6] all-reduce(x), channel_id=3, replica_groups={{0,1,2,3}}, use_global_device_ids=true,
  to_apply=f }
no { x = f32[6] parameter(0) ROOT r = f32[6] negate(x) }
ENTRY main {
  x = f32[6] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[6]) tuple(zero, x)
  w = (s32[], f32[6]) while(t), condition=condition, body=body
  y = f32[6] get-tuple-element(w), index=1
  i = s32[] get-tuple-element(w), index=0
  seven = s32[] constant(7)
  c = pred[] compare(i, seven), direction=EQ
  ROOT r = f32[6] conditional(c, y, y), true_computation=yes, false_computation=no
}
"""


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_in_loops_and_branches(target: str) -> None:
    agree(heron.parse("HloModule m, num_partitions=4\n" + LOOP), target)


def ragged(rows: int, width: int) -> Module:
    return module_of(f"""x = f32[{rows},{width}] parameter(0)
    o = f32[{rows},{width}] parameter(1)
    i = s32[8] parameter(2)
    s = s32[8] parameter(3)
    t = s32[8] parameter(4)
    r = s32[8] parameter(5)
    ROOT a = f32[{rows},{width}] ragged-all-to-all(x, o, i, s, t, r), channel_id=1, replica_groups={{{{0,1,2,3}}}}""")


@pytest.mark.parametrize("width", [2, 2000])
def test_ragged_all_to_all(width: int) -> None:
    module, random = ragged(20, width), np.random.default_rng(0)
    inputs = []
    for n in range(4):
        sizes = random.integers(0, 3, 8).astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        places = (np.arange(8) % 2 + 2 * n).astype(np.int32) * 2
        x = random.integers(0, 9, (2, 20, width)).astype(np.float32)
        inputs.append([x[0], x[1], starts, sizes, places, sizes])
    program = heron.compile(module)
    for got, want in zip(program.run_devices(inputs), evaluate_devices(module, inputs), strict=True):
        assert np.array_equal(got[0], want[0])
    inputs[2][4][3] = 19
    inputs[2][3][3] = 2
    with pytest.raises(HeronError, match="RUN084"):
        program.run_devices(inputs)


def test_sends_of_simulated_devices() -> None:
    pairs = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}'
    module = module_of(f"""x = f32[3] parameter(0)
    t = token[] after-all()
    s = (f32[3], u32[], token[]) send(x, t), channel_id=1, {pairs}
    r = (f32[3], u32[], token[]) recv(t), channel_id=1, {pairs}
    e = token[] send-done(s), channel_id=1
    d = (f32[3], token[]) recv-done(r), channel_id=1
    ROOT y = f32[3] get-tuple-element(d), index=0""")
    agree(module, "sim:sm_90")
    with pytest.raises(HeronError, match="GEN002"):
        heron.compile(module)
    assert PassContext().run_pass(get("send-recv-combiner"), module)
    agree(module, "sim:sm_90")


def test_devices_with_several_threads() -> None:
    body = "x = f32[300,1000] parameter(0) e = f32[300,1000] negate(x) a = f32[300,1000] all-reduce(e), ALL, "
    body += "to_apply=f ROOT r = f32[300,1000] abs(a)"
    agree(module_of(body, reducer("f32"), n=2), options=heron.Options(threads=4))


def test_replicas_and_partitions() -> None:
    text = "HloModule m, replica_count=2, num_partitions=2\n" + reducer("f32")
    body = """x = f32[5] parameter(0)
    a = f32[5] all-reduce(x), replica_groups={{0,1}}, to_apply=f
    b = f32[5] all-reduce(x), channel_id=1, replica_groups={{1},{0}}, to_apply=f
    c = f32[5] collective-permute(x), source_target_pairs={{0,1}}
    d = f32[5] collective-permute(x), channel_id=2, source_target_pairs={{1,0}}
    ROOT t = (f32[5], f32[5], f32[5], f32[5]) tuple(a, b, c, d)"""
    module = heron.parse(f"{text}ENTRY main {{ {body} }}")
    inputs = [[np.arange(5, dtype=np.float32) * 10**n] for n in range(4)]
    for found, wanted in zip(heron.compile(module).run_devices(inputs), evaluate_devices(module, inputs), strict=True):
        assert all((f == w).all() for f, w in zip(found, wanted, strict=True))


def test_constants_and_random_numbers() -> None:
    body = """s = u64[2] rng-get-and-update-state(), delta=3
    c = s32[4] constant({4, 3, 2, 1})
    p = u32[] partition-id()
    i = s32[] convert(p)
    b = s32[4] broadcast(i), dimensions={}
    d = s32[4] multiply(c, b)
    ROOT t = (u64[2], s32[4]) tuple(s, d)"""
    program = heron.compile(module_of(body))
    first, second = program.run_devices([[]] * 4), program.run_devices([[]] * 4)
    for n in range(4):
        assert (first[n][0] == first[0][0]).all() and (second[n][0] != first[n][0]).any()
        assert (first[n][1] == np.array([4, 3, 2, 1]) * n).all()


def test_global_arrays(tmp_path: pathlib.Path) -> None:
    """Arrays are cut and joined as the program says; a saved program does the same."""
    module = module_of("x = f32[3] parameter(0) ROOT r = f32[3] add(x, x)")
    program = heron.compile(module)
    with pytest.raises(HeronError, match="RUN086"):
        program(np.zeros(3, np.float32))
    heron.save(program, tmp_path / "m.heron")
    loaded = heron.load(tmp_path / "m.heron")
    assert loaded.devices == 4 and (loaded.run_devices([[np.ones(3, np.float32)]] * 4)[1][0] == 2).all()


def test_spread() -> None:
    sharding = "{devices=[2,2]<=[4]}"
    global_ = array(F32, (5, 4))
    spread = Spread(2, 4, (Array(global_, sharding),), (Array(global_, sharding),))
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    rows = spread.cut([x])
    assert len(rows) == 8 and rows[1][0].tolist() == [[2, 3], [6, 7], [10, 11]]
    assert rows[2][0].tolist() == [[12, 13], [16, 17], [0, 0]]
    assert (spread.join(rows)[0] == x).all()


@pytest.mark.parametrize("sharding", ["{unreduced}", "{devices=[2,1,2]<=[4] last_tile_dims={unreduced}}"])
def test_summands_add_up_to_the_array(sharding: str) -> None:
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    text = f"""HloModule m, num_partitions=4
ENTRY e {{
  x = f32[5,4] parameter(0), sharding={sharding}
  ROOT r = f32[5,4] negate(x), sharding={sharding}
}}"""
    assert (heron.compile(heron.parse(text))(x) == -x).all()


def test_many_devices() -> None:
    """All that forty devices share lies within its memory."""
    module = module_of("x = s32[3] parameter(0) ROOT r = s32[3] all-reduce(x), ALL, to_apply=f", reducer("s32"), n=40)
    rows = [[np.full(3, k, np.int32)] for k in range(40)]
    assert all((row[0] == sum(range(40))).all() for row in heron.compile(module).run_devices(rows))


def test_saved_programs(tmp_path: pathlib.Path) -> None:
    module = heron.parse("HloModule m, num_partitions=4\n" + LOOP)
    inputs = inputs_of(module)
    for target in ("cpu", "sim:sm_90"):
        program = heron.compile(module, target)
        heron.save(program, tmp_path / "m.heron")
        loaded = heron.load(tmp_path / "m.heron")
        for got, want in zip(loaded.run_devices(inputs), program.run_devices(inputs), strict=True):
            assert (got[0] == want[0]).all()


def test_sums_in_the_place_of_an_operand() -> None:
    body = """x = f32[5000] parameter(0)
    y = f32[5000] negate(x)
    z = f32[5000] exponential(x)
    r = (f32[5000], f32[5000]) all-reduce(y, z), ALL, to_apply=f
    a = f32[5000] get-tuple-element(r), index=0
    b = f32[5000] get-tuple-element(r), index=1
    ROOT s = f32[5000] subtract(a, b)"""
    program = heron.compile(module_of(body, reducer("f32")))
    (line,) = [t for t in program.stage("thunks").splitlines() if "all-reduce" in t]
    results, operands = line.partition("devices ")[2].partition("  //")[0].split(" = ")
    assert results == operands and program.memory.temp == 20_000

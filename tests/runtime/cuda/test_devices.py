"""Programs on several rehearsed GPUs: every collective by NCCL's calls, in graphs and on streams, to the evaluator's values."""

from __future__ import annotations

import contextlib
import pathlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

import heron
from heron.evaluator import evaluate_devices
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.runtime.collectives import mpi
from heron.runtime.cuda import devices
from heron.runtime.cuda.devices import CudaDevices
from tests.gpu import nccl as one_gpu
from tests.rehearsal.compiling import compile_devices, learn
from tests.rehearsal.nccl import Nccl, rehearsed_devices
from tests.runtime.collectives.test_exchange import FORMS, LOOP, inputs_of, module_of, ragged, reducer
from tests.sharded_programs import Program


def agree(module: Module, nccl: Nccl, inputs: list[list[np.ndarray]] | None = None, runs: int = 2) -> CudaDevices:
    """Run it several times, the first on streams, then as graphs; the program."""
    inputs = inputs or inputs_of(module)
    program = compile_devices(module, nccl.recorder)
    wanted = evaluate_devices(module, inputs)
    for _ in range(runs):
        for device, (got, want) in enumerate(zip(program.run_devices(inputs), wanted, strict=True)):
            for n, (g, w) in enumerate(zip(got, want, strict=True)):
                assert g.dtype == w.dtype and np.array_equal(g, w), f"output {n} of device {device}"
    assert not nccl.noted
    return program


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    with rehearsed_devices(4) as nccl:
        agree(module_of(FORMS[form], reducer("f32")), nccl)


@pytest.mark.parametrize("t", "pred s8 s16 u32 s64 bf16 f64 c64 f8e4m3fn s4".split())
def test_types(t: str) -> None:
    """What NCCL has no type for is moved as bytes, and combined by the devices; s16 is summed as s32."""
    op = "or" if t == "pred" else "add"
    body = f"x = {t}[8,5] parameter(0) a = {t}[8,5] all-reduce(x), ALL, to_apply=f "
    body += f"s = {t}[2,5] reduce-scatter(x), ALL, dimensions={{0}}, to_apply=f "
    body += f"g = {t}[32,5] all-gather(x), ALL, dimensions={{0}} "
    body += f"ROOT r = ({t}[8,5], {t}[2,5], {t}[32,5]) tuple(a, s, g)"
    with rehearsed_devices(4) as nccl:
        agree(module_of(body, reducer(t, op)), nccl)
        assert nccl.count("ncclAllReduce") == (0 if t in ("f8e4m3fn", "s4") else 8)


@pytest.mark.parametrize("op", ["maximum", "minimum", "xor", "multiply"])
def test_reducers(op: str) -> None:
    t = "s32" if op == "xor" else "f32"
    body = f"x = {t}[6,8] parameter(0) a = {t}[6,8] all-reduce(x), TWO, to_apply=f "
    body += (
        f"s = {t}[6,4] reduce-scatter(x), TWO, dimensions={{1}}, to_apply=f ROOT r = ({t}[6,8], {t}[6,4]) tuple(a, s)"
    )
    with rehearsed_devices(4) as nccl:
        agree(module_of(body, reducer(t, op)), nccl)
        assert bool(nccl.count("ncclAllReduce")) == (op == "multiply")


def test_a_nan_is_not_lost() -> None:
    """NCCL's extrema of floats may lose one: with math=fast they are used."""
    body = "x = f32[3] parameter(0) ROOT a = f32[3] all-reduce(x), ALL, to_apply=f"
    module = module_of(body, reducer("f32", "maximum"))
    inputs = [[np.array([n, np.nan if n == 1 else 2, -n], np.float32)] for n in range(4)]
    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder)
        assert np.array_equal(program.run_devices(inputs)[2][0], np.array([3, np.nan, 0], np.float32), equal_nan=True)
        fast = compile_devices(module, nccl.recorder, options=Options(math="fast"))
        assert not nccl.count("ncclAllReduce")
        fast.run_devices(inputs)
        assert nccl.count("ncclAllReduce") == 4


def test_a_reducer_of_several_ops_and_types_together() -> None:
    capped = """f {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      c = f32[] add(a, b)
      h = f32[] constant(5)
      ROOT m = f32[] minimum(c, h)
    }
    """ + reducer("f32").replace("f {", "g {")
    body = """x = f32[3] parameter(0)
    y = f32[8] parameter(1)
    a = f32[3] all-reduce(x), ALL, to_apply=f
    s = f32[2] reduce-scatter(y), ALL, dimensions={0}, to_apply=f
    b = (f32[3], f32[8]) all-reduce(x, y), ALL, to_apply=g
    ROOT r = (f32[3], f32[2], (f32[3], f32[8])) tuple(a, s, b)"""
    with rehearsed_devices(4) as nccl:
        agree(module_of(body, capped), nccl)


def test_replicas_and_partitions() -> None:
    body = """x = f32[8] parameter(0)
    a = f32[8] all-reduce(x), replica_groups={{0,1}}, to_apply=f
    b = f32[8] all-reduce(x), channel_id=1, replica_groups={{1},{0}}, to_apply=f
    c = f32[8] collective-permute(x), source_target_pairs={{0,1}}
    d = f32[8] collective-permute(x), channel_id=2, source_target_pairs={{1,0}}
    e = f32[2] reduce-scatter(x), channel_id=3, replica_groups={{0,3,1,2}}, use_global_device_ids=true,
      dimensions={0}, to_apply=most
    ROOT t = (f32[8], f32[8], f32[8], f32[8], f32[2]) tuple(a, b, c, d, e)"""
    text = "HloModule m, replica_count=2, num_partitions=2\n" + reducer("f32")
    module = heron.parse(f"{text}{reducer('f32', 'maximum').replace('f {', 'most {')}ENTRY main {{ {body} }}")
    inputs = [[np.arange(8, dtype=np.float32) * 10**n] for n in range(4)]
    with rehearsed_devices(4) as nccl:
        agree(module, nccl, inputs)


def test_in_loops_and_branches() -> None:
    """The host drives them: what NCCL puts into a graph need not be such as conditional nodes take."""
    with rehearsed_devices(4) as nccl:
        program = agree(heron.parse("HloModule m, num_partitions=4\n" + LOOP), nccl, runs=3)
        assert "host: branch" in program.stage("graph") and nccl.recorder.count("cuGraphLaunch")
        assert "collectives by NCCL: 15 in CUDA graphs, 0 whose sizes the host reads" in program.trace.notes


def test_collectives_of_a_graph_come_one_after_the_other() -> None:
    """Two that do not depend on each other must not run side by side: devices could begin with different ones."""
    body = """x = f32[9000] parameter(0)
    y = s32[70] parameter(1)
    a = f32[9000] all-reduce(x), ALL, to_apply=f
    b = s32[70] collective-permute(y), channel_id=2, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
    ROOT r = (f32[9000], s32[70]) tuple(a, b)"""
    with rehearsed_devices(4) as nccl:
        program = agree(module_of(body, reducer("f32")), nccl)
        lines = [x for x in program.stage("graph").splitlines() if "devices" in x]
        assert len(lines) == 2 and "after" in lines[1]


@pytest.mark.parametrize("width", [2, 700])
def test_ragged_all_to_all(width: int) -> None:
    module, random = ragged(20, width), np.random.default_rng(0)
    inputs = []
    for n in range(4):
        sizes = random.integers(0, 3, 8).astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        places = (np.arange(8) % 2 + 2 * n).astype(np.int32) * 2
        x = random.integers(0, 9, (2, 20, width)).astype(np.float32)
        inputs.append([x[0], x[1], starts, sizes, places, sizes])
    with rehearsed_devices(4) as nccl:
        program = agree(module, nccl, inputs)
        assert "collectives by NCCL: 0 in CUDA graphs, 1 whose sizes the host reads" in program.trace.notes
        before = [list(row) for row in inputs]
        inputs[2][4], inputs[2][3] = inputs[2][4].copy(), inputs[2][3].copy()
        inputs[2][4][3], inputs[2][3][3] = 19, 2
        with pytest.raises(heron.HeronError, match="RUN084") as error:
            program.run_devices(inputs)
        assert "rows 19 to 21 of 20" in str(error.value) and "ragged-all-to-all" in str(error.value)
        assert all((g[0] == w[0]).all() for g, w in zip(program.run_devices(before), evaluate_devices(module, before), strict=True))  # fmt: skip


#: between them they have every collective, a loop, a branch, random bits and uneven shards
SHARDED = ["collectives_zoo", "cond_sharded", "seed_matmul", "seed_contracting", "while_sharded", "ring_attention"]


@pytest.mark.parametrize("name", SHARDED)
def test_sharded_programs(name: str) -> None:
    """All of them: ``python -m tests.runtime.cuda.sharded``."""
    run_sharded(name)


def run_sharded(name: str) -> dict[str, int]:
    """Run a sharded program twice on rehearsed GPUs, to XLA's values; what was called."""
    p = Program(name)
    with rehearsed_devices(p.devices) as nccl:
        program = compile_devices(p.module(), nccl.recorder)
        for _ in range(2):
            p.check(program.run(p.inputs()), 2e-4)
        assert not nccl.noted and not any("no graph" in note for note in program.trace.notes)
        launches = nccl.recorder.count("cuGraphLaunch")
        assert launches, "no graph was launched"
        return {"graph launches": launches, "calls of NCCL": len(nccl.calls)}


def test_saved_programs(tmp_path: pathlib.Path) -> None:
    module = heron.parse("HloModule m, num_partitions=4\n" + LOOP)
    inputs = inputs_of(module)
    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder)
        heron.save(program, tmp_path / "m.heron")
        loaded = heron.load(tmp_path / "m.heron")
        assert isinstance(loaded, CudaDevices) and loaded.timeout == program.timeout == 600
        learn(loaded, module, nccl.recorder, Options())
        for got, want in zip(loaded.run_devices(inputs), evaluate_devices(module, inputs), strict=True):
            assert (got[0] == want[0]).all()


def test_programs_share_communicators() -> None:
    """And GPUs are taken in order."""
    body = "x = f32[3,5] parameter(0) ROOT r = f32[3,5] all-reduce(x), ALL, to_apply=f"
    with rehearsed_devices(6) as nccl:
        for width in (5, 6):
            agree(module_of(body.replace("3,5", f"3,{width}"), reducer("f32")), nccl)
        assert nccl.count("ncclCommInitRank") == 4 and nccl.count("ncclGetUniqueId") == 1
        assert sorted({device for device, text in nccl.calls if "InitRank" in text}) == [0, 1, 2, 3]


class _Processes(threading.local):
    """Threads in the role of processes: ``rank`` is the thread's."""

    rank = 0


def test_devices_in_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process has two of four devices and its share of the GPUs; ids go from one to the other. MPI itself:
    ``mpi_ids``."""
    here, ids, meeting = _Processes(), dict[tuple[int, ...], Future[bytes]](), threading.Barrier(2)
    told: list[object] = [None, None]

    def shared(members: Sequence[int], processes: Sequence[int], make: Callable[[], bytes], size: int, _: int) -> bytes:
        found = ids.setdefault(tuple(members), Future())
        if processes[members[0]] == here.rank:
            found.set_result(make())
        assert len(found.result(10)) == size
        return found.result(10)

    def gathered(rows: list[object]) -> list[object]:
        told[here.rank] = rows
        meeting.wait(10)
        return [row for each in told for row in each]  # type: ignore[attr-defined]

    monkeypatch.setattr(mpi, "shared", shared)
    monkeypatch.setattr(mpi, "gathered", gathered)
    monkeypatch.setattr(mpi, "processes_of", lambda devices, places: [n // 2 for n in range(devices)])
    monkeypatch.setattr(mpi, "place_on_this_host", lambda: here.rank)
    monkeypatch.setattr(devices, "_LAUNCH", contextlib.nullcontext())
    module = heron.parse("HloModule m, num_partitions=4\n" + LOOP)
    inputs = inputs_of(module)
    wanted = evaluate_devices(module, inputs)

    def process(rank: int) -> list[list[np.ndarray]]:
        here.rank, places = rank, range(2 * rank, 2 * rank + 2)
        for _ in range(2):
            rows = program.run_devices([inputs[n] for n in places], places=places)
        return rows

    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder)
        with ThreadPoolExecutor(2) as pool:
            found = [row for rows in pool.map(process, range(2)) for row in rows]
        assert all((g[0] == w[0]).all() for g, w in zip(found, wanted, strict=True))
        assert nccl.count("ncclGetUniqueId") == 3 and nccl.count("ncclCommInitRank") == 8


def test_a_device_with_itself_alone() -> None:
    """As a machine with one GPU tests NCCL: ``pytest tests/gpu/test_nccl.py``."""
    with rehearsed_devices(1) as nccl:
        assert not one_gpu.check(nccl.recorder)
        assert nccl.count("ncclCommInitRank") == 1 and nccl.count("ncclBroadcast") and nccl.count("ncclReduceScatter")


def transfers(first: str, second: str, tied: str) -> Module:
    """A send and a receive of a ring of devices. ``tied``: what keeps the end of the first behind the second."""
    pairs = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2},{2,0}}"}'
    begin = {
        "s": f"s = (f32[3], u32[], token[]) send(y, t), channel_id=1, {pairs}",
        "r": f"r = (f32[3], u32[], token[]) recv(t), channel_id=1, {pairs}",
    }
    ends = {"s": "e = token[] send-done(s), channel_id=1", "r": "d = (f32[3], token[]) recv-done(r), channel_id=1"}
    return module_of(f"""x = f32[3] parameter(0)
    y = f32[3] negate(x)
    t = token[] after-all()
    {begin[first]}
    {begin[second]}, control-predecessors={{{first}}}
    {ends[first]}{tied}
    {ends[second]}
    z = f32[3] get-tuple-element(d), index=0
    ROOT q = f32[3] add(z, x)""")


@pytest.mark.parametrize(("first", "second"), ["sr", "rs"])
def test_a_send_and_a_receive_are_one_exchange(first: str, second: str) -> None:
    with rehearsed_devices(4) as nccl:
        agree(transfers(first, second, f", control-predecessors={{{second}}}"), nccl)
        assert nccl.count("ncclSend") == nccl.count("ncclRecv") == 6


def test_transfers_that_begin_together() -> None:
    module = transfers("s", "r", ", control-predecessors={r}")
    assert PassContext().run_pass(get("send-recv-combiner"), module)
    with rehearsed_devices(4) as nccl:
        agree(module, nccl)
        assert nccl.count("ncclSend") == nccl.count("ncclRecv") == 6


def test_a_receive_that_ends_before_its_send_begins() -> None:
    module = transfers("r", "s", "")
    named = {i.name: i for i in module.entry.instructions}
    named["s"].add_control_predecessor(named["d"])
    with pytest.raises(heron.HeronError, match="GEN002") as error:
        heron.compile(module, "sm_90")
    assert "'r' ends before 's' begins" in str(error.value)

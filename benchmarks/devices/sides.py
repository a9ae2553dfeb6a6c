"""Both sides of the comparison: a program of JAX on 8 devices, compiled and run by XLA:CPU and by heron."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import heron
from benchmarks.devices.case import Case
from heron.codegen.llvm.jit import MADE
from heron.errors import HeronError
from heron.frontends.loading import load

#: programs that are lowered with shardings of HLO in place of Shardy's
GSPMD = ("gspmd_tp_train", "gspmd_shard_map")


class Xla:
    """XLA:CPU. ``partitioned``: its program of one device, as its partitioner left it."""

    def __init__(self, case: Case, name: str) -> None:
        shardings = _shardings(case.in_specs, case)
        more = {} if case.out_specs is None else {"out_shardings": _shardings(case.out_specs, case)}
        leaves, tree = jax.tree.flatten(case.arguments)
        each = _spread(shardings, case.arguments)
        self.placed = jax.tree.unflatten(
            tree, [jax.device_put(x, s) if s is not None else x for x, s in zip(leaves, each, strict=True)]
        )
        # donated arguments are gone after one run
        self.jitted = jax.jit(case.function, in_shardings=shardings, **more)
        self.shardy = name not in GSPMD
        lowered = self.lowered()
        with tempfile.TemporaryDirectory() as folder:
            self.compiled = lowered.compile(
                compiler_options={"xla_dump_to": folder, "xla_dump_hlo_pass_re": "spmd", "xla_dump_hlo_as_text": True}
            )
            found = sorted(Path(folder).glob("*after_spmd-partitioning*"))
            self.partitioned = found[-1].read_text() if found else str(self.compiled.as_text())
        self.text = lowered.as_text()

    def lowered(self) -> Any:
        """The program as JAX hands it over."""
        jax.config.update("jax_use_shardy_partitioner", self.shardy)
        return self.jitted.lower(*self.placed)

    @property
    def scratch(self) -> int:
        """Bytes of scratch of a device."""
        return self.compiled.memory_analysis().temp_size_in_bytes

    def run(self) -> Any:
        return jax.block_until_ready(self.compiled(*self.placed))

    def prepared(self) -> Callable[[], Any]:
        """The function that compiles the program anew."""
        jax.clear_caches()
        return self.lowered().compile

    def rows(self, devices: int) -> list[list[np.ndarray]]:
        """The local arguments of each device that are parameters of the program."""
        kept = sorted(self.compiled._executable._kept_var_idx)  # type: ignore[attr-defined]
        leaves = [x for n, x in enumerate(jax.tree.leaves(self.placed)) if n in kept]
        shardings = jax.tree.leaves(self.compiled.input_shardings[0])
        rows: list[list[np.ndarray]] = [[] for _ in range(devices)]
        for x, sharding in zip(leaves, (shardings[n] for n in range(len(shardings))), strict=False):
            placed = jax.device_put(x, sharding)
            parts = {s.device.id: np.asarray(s.data) for s in placed.addressable_shards}
            for n, row in enumerate(rows):
                row.append(parts[n])
        return rows


class Heron:
    """heron's program: of the program as JAX lowers it, or as XLA's partitioner left it."""

    def __init__(self, xla: Xla, partitioned: bool) -> None:
        self.text = xla.partitioned if partitioned else xla.text
        self.executable = self.prepared()()
        self.rows = xla.rows(self.executable.devices)

    def run(self) -> Any:
        return self.executable.run_devices(self.rows)

    def prepared(self) -> Callable[[], Any]:
        """The function that compiles the program anew."""

        def compiled() -> Any:
            MADE.clear()  # each compile is as the first of its program
            return heron.compile(load(self.text))

        return compiled


def worst_error(xla: Any, heron: Heron, rows: list[list[np.ndarray]]) -> float:
    """The largest difference of an output from XLA's, divided by the largest magnitude in it.

    Whole arrays are compared, since each side may choose how to split a result. A program that XLA has partitioned
    does not say how; its parts are compared one by one.
    """
    spread, leaves = heron.executable.spread, jax.tree.leaves(xla)
    if spread.is_known:
        pairs = list(zip(map(np.asarray, leaves), spread.join(rows), strict=True))
    else:
        pairs = [(np.asarray(s.data), rows[s.device.id][k]) for k, x in enumerate(leaves) for s in x.addressable_shards]
    return max((_difference(want, got) for want, got in pairs), default=0.0)


def _difference(want: np.ndarray, got: np.ndarray) -> float:
    got = got[tuple(slice(0, d) for d in want.shape)].astype(np.complex128)  # an uneven part is filled up
    want = want.astype(np.complex128)
    scale = float(np.abs(want[np.isfinite(want)]).max(initial=1e-30))
    difference = np.abs(got - want)
    return float(difference[np.isfinite(difference)].max(initial=0.0)) / scale


def _shardings(specs: Any, case: Case) -> Any:
    return jax.tree.map(lambda s: NamedSharding(case.mesh, s), specs, is_leaf=lambda s: isinstance(s, PartitionSpec))


def _spread(shardings: Any, arguments: Any) -> list[Any]:
    """One sharding for each leaf of the arguments."""
    return jax.tree.leaves(
        jax.tree.map(
            lambda s, part: jax.tree.map(lambda _: s, part), shardings, arguments,
            is_leaf=lambda s: isinstance(s, NamedSharding),
        )
    )  # fmt: skip


@contextlib.contextmanager
def refused(name: str, failures: dict[str, str]) -> Iterator[None]:
    """Note the error of a program that heron refuses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except HeronError as error:
        failures[name] = str(error).splitlines()[0]

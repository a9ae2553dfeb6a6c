"""Partitioned programs run on the evaluator's devices and compared with the program on global arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

import heron
from heron.analysis.sharding.program import ProgramShardings
from heron.evaluator import evaluate, evaluate_devices
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.hlo.verifier import verify
from heron.passes.devices import device_pipelines
from heron.passes.framework.context import PassContext
from heron.passes.framework.shares import is_partitioned, joined, shares
from heron.passes.sharding.partition.program import partitioned
from tests.passes.sharding.reshards import watched


def partition(module: Module, ctx: PassContext | None = None) -> Module:
    """The program of one device, verified. `module` has a sharding for each value that is split.

    Asserts that no reshard makes a share larger than both of its ends where there is a way without that.
    """
    with watched() as reshards:
        made = partitioned(module, ProgramShardings.read(module), ctx or PassContext())
    assert not reshards.avoidable, reshards.avoidable
    verify(made)
    return made


def places(dims: Sequence[int], s: TensorSharding, mesh: AtomicMesh) -> list[tuple[tuple[slice, ...], tuple[int, ...]]]:
    """For each device its part of an array of these sizes, and the sizes of its share."""
    coordinates = np.argwhere(np.ones(mesh.sizes or (1,), bool))
    local = mesh.local_dims(dims, s)
    found: dict[int, tuple[tuple[slice, ...], tuple[int, ...]]] = {}
    for at, device in zip(coordinates, mesh.devices.reshape(-1).tolist(), strict=True):
        cut: list[slice] = []
        for size, tile, axes in zip(dims, local, s.dims, strict=True):
            n = 0
            for axis in axes:
                n = n * mesh.sizes[axis] + int(at[axis])
            cut.append(slice(min(n * tile, size), min((n + 1) * tile, size)))
        found[device] = tuple(cut), local
    return [found[device] for device in sorted(found)]


def share(x: np.ndarray, cut: tuple[slice, ...], local: tuple[int, ...], rubbish: float = 77) -> np.ndarray:
    """A device's share, filled up with rubbish."""
    full = np.full(local, rubbish if x.dtype != bool else True).astype(x.dtype)
    piece = x[cut]
    full[tuple(slice(0, d) for d in piece.shape)] = piece
    return full


def run(module: Module, inputs: Sequence[np.ndarray], made: Module | None = None) -> list[np.ndarray]:
    """The global results of the partitioned program on global inputs. Every device's share is checked against others."""
    made = partition(module) if made is None else made
    shardings = ProgramShardings.read(module)
    mesh, count = shardings.mesh, module.num_partitions
    rows: list[list[np.ndarray]] = [[] for _ in range(count)]
    leaves = [shardings.of(i, index) for i in module.entry.parameters for index, _ in i.shape.leaves()]
    for sharding, x in zip(leaves, inputs, strict=True):
        for row, own in zip(rows, _summands(x, sharding, mesh), strict=True):
            row.append(own)
    outputs = evaluate_devices(made, rows)
    root = module.entry.root
    results: list[np.ndarray] = []
    for n, (index, shape) in enumerate(root.shape.leaves()):
        results.append(_joined(shape, shardings.of(root, index), mesh, [np.asarray(row[n]) for row in outputs]))
    return results


def _summands(x: np.ndarray, s: TensorSharding, mesh: AtomicMesh) -> list[np.ndarray]:
    """Each device's share; of a partial sum all devices but those at the beginning of its axes have small integers."""
    found = [share(x, cut, local) for cut, local in places(x.shape, s, mesh)]
    if not s.unreduced:
        return found
    sums = sorted(s.unreduced)
    groups = np.moveaxis(mesh.devices, sums, range(len(sums))).reshape(mesh.size(sums), -1)
    for n, others in enumerate(groups[1:]):
        for first, device in zip(groups[0], others, strict=True):
            added = (np.arange(found[device].size).reshape(found[device].shape) % 5 - n).astype(x.dtype)
            found[device] = added
            found[first] = found[first] - added
    return found


def _joined(shape: Shape, s: TensorSharding, mesh: AtomicMesh, shares: list[np.ndarray]) -> np.ndarray:
    """The array of the shares, the sum of those along unreduced atoms; devices with the same share must agree."""
    total = np.zeros(shape.dims, shape.element_type.dtype)
    written = np.zeros(shape.dims, bool)
    counted = summands(s, mesh)
    for device, ((cut, local), own) in enumerate(zip(places(shape.dims, s, mesh), shares, strict=True)):
        assert own.shape == local, f"a share of {own.shape}, expected {local}"
        size = tuple(slice(0, c.stop - c.start) for c in cut)
        if s.unreduced:
            total[cut] += own[size] * (device in counted)
            continue
        same = np.array_equal(total[cut][written[cut]], own[size][written[cut]], equal_nan=own.dtype.kind in "fc")
        assert same, "devices disagree about a share"
        total[cut] = own[size]
        written[cut] = True
    return total


def summands(s: TensorSharding, mesh: AtomicMesh) -> set[int]:
    """One device for each different share."""
    free = [a for a in range(len(mesh.sizes)) if a not in s.used]
    order = [*(a for a in range(len(mesh.sizes)) if a in s.used), *free]
    return set(mesh.devices.transpose(order).reshape(-1, mesh.size(free))[:, 0].tolist())


def agree(module: Module, inputs: Sequence[np.ndarray], tolerance: float = 0.0) -> Module:
    """Assert that the partitioned program gives what the program on global arrays gives; the partitioned program."""
    made = partition(module)
    _compare(run(module, inputs, made), evaluate(module, *inputs), tolerance, made)
    return made


def _compare(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float, made: Module) -> None:
    for n, (a, b) in enumerate(zip(got, expected, strict=True)):
        if tolerance and a.dtype.kind in "fcV":
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"result {n}")
        else:
            np.testing.assert_array_equal(a, b, err_msg=f"result {n}\n{made}")


def agree_compiled(module: Module, inputs: Sequence[np.ndarray], tolerance: float = 0.0) -> Module:
    """As `agree`, for the program after the stages sharded and partitioned of a compile.

    Of the shardings, those of parameters and of the result are kept; propagation finds the others.
    """
    return _agree_compiled(module, inputs, tolerance, {module.entry.root})


def agree_open(module: Module, inputs: Sequence[np.ndarray], tolerance: float = 0.0) -> Module:
    """As `agree_compiled`, where the sharding of the result is found too."""
    return _agree_compiled(module, inputs, tolerance, set())


def _agree_compiled(
    module: Module, inputs: Sequence[np.ndarray], tolerance: float, kept: Collection[Instruction]
) -> Module:
    names = {i.name for i in kept}
    made = module.clone()
    for i in made.instructions():
        if i.opcode != "parameter" and i.name not in names:
            i.extras.pop("sharding", None)
    with watched() as reshards:
        for pipeline in device_pipelines().values():
            pipeline.run(made, PassContext())
    assert not reshards.avoidable, reshards.avoidable
    verify(made)
    if not is_partitioned(made):  # no value is split
        return made
    got = joined(module, made, evaluate_devices(made, shares(module, made, inputs)))
    _compare(got, evaluate(module, *inputs), tolerance, made)
    return made


def agree_on(target: str) -> Callable[[Module, Sequence[np.ndarray], float], Module]:
    """As `agree`, for the program compiled for a target and run on global arrays; without shardings nothing is run."""

    def compare(module: Module, inputs: Sequence[np.ndarray], tolerance: float = 0.0) -> Module:
        program = heron.compile(module, target)
        if program.spread.is_known:
            _compare(program.run(inputs), evaluate(module, *inputs), tolerance, module)
        return module

    return compare


def small_integers(shape: Shape, seed: int = 0) -> np.ndarray:
    """Random integers from -4 to 4, in the shape's type: sums of them are exact in any order."""
    drawn = np.random.default_rng(seed).integers(-4, 5, shape.dims)
    return drawn.astype(shape.element_type.dtype) if shape.element_type.dtype != np.bool_ else drawn > 0


def inputs_of(module: Module, seed: int = 0) -> list[np.ndarray]:
    """Small integers for every parameter."""
    leaves = [s for i in module.entry.parameters for _, s in i.shape.leaves()]
    return [small_integers(s, seed + n) for n, s in enumerate(leaves)]


def sharded(text: str) -> str:
    """`text` with every ``@[…]`` behind an instruction replaced by a sharding on the mesh of its first line, ``mesh …``."""
    first, _, rest = text.strip().partition("\n")
    mesh = first.strip()
    return rest.replace(" @[", f", sharding={{{mesh}, [").replace("]@", "]}")

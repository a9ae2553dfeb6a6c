"""Optional checks after every pass that changed something: the verifier, a comparison of values, a dump."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heron import files
from heron.errors import HeronError
from heron.evaluator import evaluate_devices
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import ElementType
from heron.hlo.verifier import VerifierOptions, verify
from heron.passes.framework.shares import is_partitioned, joined, shares

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Device

#: relative tolerance by width of the type, for passes that may round otherwise
_TOLERANCE = {64: 1e-10, 32: 2e-5, 16: 2e-2, 8: 0.3, 4: 1.0}


def dump(module: Module, folder: str, number: int, pass_name: str) -> None:
    """Write ``NNN.pass-name.hlo`` into `folder`. Raises CLI012 when it cannot be written."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.os_error("CLI012", f"cannot make the dump folder '{folder}'", error) from None
    files.write_text(Path(folder) / f"{number:03}.{pass_name}.hlo", str(module))


def verify_after(pass_name: str, module: Module, has_layouts: bool = False) -> None:
    """Raise PASS007 when `module` does not verify: its layouts too once it has some, its order once it is scheduled."""
    try:
        verify(module, VerifierOptions(layout_sensitive=has_layouts, scheduled=module.is_scheduled))
    except HeronError as error:
        raise HeronError(
            "PASS007",
            f"pass '{pass_name}' left a module that does not verify: {error.what}",
            where=error.where,
            why=f"{error.code}" + (f": {error.why}" if error.why else ""),
            hint="run with check=values and dump_dir to see the module before and after",
        ) from error


class ValueCheck:
    """Evaluates the module after each changing pass and compares with what it gave before.

    Each evaluation is also the next one's reference, so a chain of passes costs one evaluation each. A program for
    several devices runs on all of them, each with inputs of its own. A program that has just been partitioned gets the
    first device's inputs, cut into shares.
    """

    def __init__(self, module: Module, seed: int = 0) -> None:
        count = module.replica_count * module.num_partitions
        self._inputs = [random_inputs(module, seed + device) for device in range(count)]
        self._before = module.clone()
        self._values = _evaluate(module, self._inputs)

    def after(self, pass_name: str, module: Module) -> None:
        """Raise PASS003 when `module` gives other values than it did before `pass_name`."""
        if is_partitioned(module) and not is_partitioned(self._before):
            self._cut_inputs(module)
        values = _evaluate(module, self._inputs)
        if len(values) != len(self._values):
            raise HeronError(
                "PASS003", f"pass '{pass_name}' changed the number of outputs: {len(self._values)}, now {len(values)}"
            )
        for n, (old, new) in enumerate(zip(self._values, values, strict=True)):
            problem = difference(old, new)
            if problem is None:
                continue
            first = self._first_difference(module)
            raise HeronError(
                "PASS003",
                f"pass '{pass_name}' changed the value of output {n}",
                where=first,
                why=problem,
                hint=f"heron opt FILE -p {pass_name} on the module before it (dump_dir=DIR writes it)",
            )
        self._before, self._values = module.clone(), values

    def _cut_inputs(self, module: Module) -> None:
        """Give each device of a partitioned program its share, and expect the results it has if these are joined."""
        self._inputs = shares(self._before, module, self._inputs[0])
        count = len(self._values) // module.num_partitions
        rows = _rows(module, self._inputs)
        for n, (old, new) in enumerate(zip(self._values[:count], joined(self._before, module, rows), strict=True)):
            problem = difference(old, new)
            if problem is not None:
                raise HeronError("PASS003", f"partitioning changed the value of output {n}", why=problem)
        self._values = [value for row in rows for value in row]

    def problem(self, module: Module) -> str | None:
        """The problem with the values of `module`, as a sentence; None if they are unchanged."""
        values = _evaluate(module, self._inputs)
        if len(values) != len(self._values):
            return f"{len(self._values)} outputs became {len(values)}"
        for n, (old, new) in enumerate(zip(self._values, values, strict=True)):
            found = difference(old, new)
            if found is not None:
                return f"output {n}: {found}"
        return None

    def _first_difference(self, module: Module) -> str | None:
        """The first instruction of the entry that both modules have by name and that now has another value."""
        old_by_name: dict[str, Instruction] = {i.name: i for i in self._before.entry.instructions}
        new_by_name = {i.name: i for i in module.entry.instructions}
        shared = {name for name, i in new_by_name.items() if _same_type(i, old_by_name.get(name))}
        old = _values_of(self._before, shared, self._inputs)
        new = _values_of(module, shared, self._inputs)
        for place in new:  # in the order they were computed
            if difference(old.get(place), new[place]) is not None:
                return str(new_by_name[place[1]])
        return None


def _same_type(i: Instruction, old: Instruction | None) -> bool:
    return old is not None and i.shape.is_array and i.shape.bare is old.shape.bare


def difference(old: Any, new: Any) -> str | None:
    """The problem with `new`, as a sentence, or None. Integers must be equal, floats close for their width."""
    if old is None and new is None:
        return None
    old, new = np.asarray(old), np.asarray(new)
    if old.dtype != new.dtype or old.shape != new.shape:
        return f"it was {old.dtype}{list(old.shape)} and is {new.dtype}{list(new.shape)}"
    if not _is_inexact(old.dtype):
        wrong = np.asarray(old != new)
        if not wrong.any():
            return None
        where = tuple(int(n) for n in np.argwhere(wrong)[0])
        return f"{int(wrong.sum())} of {old.size} elements differ; at {list(where)}: {old[where]} became {new[where]}"
    a, b, error, bound = _errors(old, new)
    fine = error <= bound
    if fine.all():
        return None
    where = tuple(int(n) for n in np.argwhere(~fine)[0])
    worst = float(np.nanmax(np.where(fine, 0, error))) if np.isfinite(error[~fine]).any() else float("nan")
    return (
        f"{int((~fine).sum())} of {old.size} elements differ, max error {worst:.3g}; "
        f"at {list(where)}: {old[where]} became {new[where]}"
    )


def excess(old: Any, new: Any) -> float:
    """The error of `new` as a multiple of the largest that is fine; infinite for integers that are not equal."""
    old, new = np.asarray(old), np.asarray(new)
    if old.dtype != new.dtype or old.shape != new.shape:
        return float("inf")
    if not _is_inexact(old.dtype):
        return float("inf") if (old != new).any() else 0.0
    _, _, error, bound = _errors(old, new)
    with np.errstate(all="ignore"):
        ratio = np.where(error == 0, 0.0, error / bound)
    return float(ratio.max(initial=0.0))


def _errors(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Both arrays in wide types, the errors, and the errors that are fine; of one that is no number, infinite."""
    wide = np.complex128 if old.dtype.kind == "c" else np.float64
    a, b = old.astype(wide), new.astype(wide)
    bits = old.dtype.itemsize * 8 // (2 if old.dtype.kind == "c" else 1)
    tolerance = _TOLERANCE[bits]
    finite = np.isfinite(a)
    scale = float(np.abs(a[finite]).max()) if finite.any() else 0.0
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        error = np.abs(a - b)
        error = np.where(same, 0.0, np.where(np.isnan(error) | ~finite, np.inf, error))
        bound = np.where(finite, tolerance * (np.abs(a) + min(scale, 1e300)), 0.0)
    return a, b, error, bound


def _is_inexact(dtype: np.dtype) -> bool:
    return dtype.kind in "fc" or (dtype.kind == "V" and "float" in dtype.name)


def random_inputs(module: Module, seed: int = 0) -> list[np.ndarray]:
    """Small seeded values for the entry's parameters, tuples flattened: floats about ±2, integers 0 to 7.

    A parameter whose sharding says that all devices have the same gets the same for every seed.
    """
    rng, common = np.random.default_rng(seed), np.random.default_rng(0)
    found: list[np.ndarray] = []
    for p in module.entry.parameters:
        is_common = p.sharding is not None and p.sharding.is_replicated
        for _, leaf in p.shape.leaves():
            if leaf.is_array:
                values = [random_array(leaf.element_type, leaf.dims, r) for r in (common, rng)]
                found.append(values[not is_common])
    return found


def random_array(element_type: ElementType, dims: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Seeded values of that type, in a range where programs usually work."""
    if element_type.kind == "pred":
        return rng.integers(0, 2, dims).astype(np.bool_)
    if element_type.is_integer:
        return rng.integers(0, min(8, 1 << (element_type.bits - 1)), dims).astype(element_type.dtype)
    values = rng.uniform(-2, 2, dims)
    if element_type.is_complex:
        values = values + 1j * rng.uniform(-2, 2, dims)
    return values.astype(element_type.dtype)


def _evaluate(module: Module, inputs: list[list[np.ndarray]]) -> list[np.ndarray]:
    """The outputs of every device the program is for, one device after the other."""
    return [output for outputs in _rows(module, inputs) for output in outputs]


def _rows(module: Module, inputs: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    """The outputs of each device."""
    return evaluate_devices(module, inputs)


def _values_of(module: Module, names: set[str], inputs: list[list[np.ndarray]]) -> dict[tuple[int, str], Any]:
    """Values of the entry's instructions of those names by device and name, in the order they are computed."""
    found: dict[tuple[int, str], Any] = {}

    def keep(device: Device, i: Instruction, value: Any) -> None:
        if i.name in names and i.parent is module.entry:
            found[device.number, i.name] = value

    evaluate_devices(module, inputs, on_value=keep)
    return found

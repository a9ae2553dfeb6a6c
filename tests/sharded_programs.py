"""Sharded programs of JAX with XLA's values, for every part that works for several devices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from heron.frontends.loading import load
from heron.hlo.ir.module import Module

FOLDER = Path(__file__).parent / "sharded"
NAMES = sorted(p.stem for p in (FOLDER / "stablehlo").glob("*.mlir"))
#: error of an element against the largest element, by type
_TOLERANCE = {"bfloat16": 2e-2, "float16": 1e-2}


@dataclass(frozen=True)
class Program:
    """A program by name.

    Attributes:
        name: as in `NAMES`.
    """

    name: str

    def module(self, form: str = "stablehlo") -> Module:
        """The program on global arrays, from ``stablehlo`` or from ``hlo``."""
        suffix = {"stablehlo": "mlir", "hlo": "hlo"}[form]
        return load(FOLDER / form / f"{self.name}.{suffix}")

    @cached_property
    def _golden(self) -> dict[str, np.ndarray]:
        with np.load(FOLDER / "goldens" / f"{self.name}.npz") as found:
            return dict(found)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The facts of the README."""
        return json.loads(str(self._golden["meta"]))

    @property
    def devices(self) -> int:
        return self.meta["num_partitions"]

    def inputs(self) -> list[np.ndarray]:
        """The global arrays of the parameters."""
        return [_typed(self._golden[f"in{n}"], self.meta["inputs"][n]["dtype"]) for n in self.meta["kept_inputs"]]

    def outputs(self) -> list[np.ndarray]:
        """The global results."""
        return [_typed(self._golden[f"out{n}"], o["dtype"]) for n, o in enumerate(self.meta["outputs"])]

    def check(self, results: Sequence[np.ndarray], tolerance: float = 1e-5) -> None:
        """Fail unless global results are right: integers exactly, floats within `tolerance` of the largest element."""
        for n, (got, _) in enumerate(zip(results, self.outputs(), strict=True)):
            self.check_part(n, np.asarray(got), ..., tolerance)

    def check_part(self, n: int, got: np.ndarray, at: Any, tolerance: float = 1e-5) -> None:
        """The same for the part of output `n` that an index names."""
        whole = self.outputs()[n]
        want = whole[at]
        assert (got.shape, got.dtype) == (want.shape, want.dtype), f"output {n} of {self.name}"
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want, err_msg=f"output {n} of {self.name}")
        elif want.size:
            wide = np.complex128 if want.dtype.kind == "c" else np.float64
            largest = np.nanmax(np.abs(whole.astype(wide)))
            most = max(tolerance, _TOLERANCE.get(want.dtype.name, 0))
            np.testing.assert_allclose(
                got.astype(wide), want.astype(wide), rtol=most, atol=most * largest, err_msg=f"output {n}"
            )


def _typed(x: np.ndarray, name: str) -> np.ndarray:
    dtype = np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)
    return x if x.dtype == dtype else x.view(dtype)

"""docs/reference/accuracy.md says what is so: no real function is off by more than 2 ULP, and no sample by more than it says."""

from __future__ import annotations

import numpy as np
import pytest

from heron.codegen.llvm.libdevice import candidates
from heron.hlo.ir import types
from tests.codegen.accuracy import PAGE, REAL, distance, functions, measure, measure_libdevice


def table(target: str) -> dict[tuple[str, str], float]:
    """(function, type) -> ULP of the page."""
    section = PAGE.read_text().split(f"## {target}\n")[1].split("\n## ")[0]
    header, _, *rows = [
        [c.strip() for c in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    return {(row[0], t): float(v) for row in rows for t, v in zip(header[1:], row[1:], strict=True) if v}


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_the_page_is_whole_and_good(target: str) -> None:
    found = table(target)
    for op in functions():
        for t in REAL:
            assert found[op.name, t.name] <= 2.0


@pytest.mark.parametrize("t", [types.BF16, types.F32, types.F64], ids=str)
def test_samples_are_as_good(t: types.ElementType) -> None:
    if t is types.F64 and np.finfo(np.longdouble).nmant < 60:
        pytest.skip("the reference needs an 80-bit long double")
    said = table("cpu")
    worse = [e for e in measure(t, "cpu", 20_000) if e.ulps > said[e.op, t.name] + 0.01]
    assert not worse


@pytest.mark.parametrize("t", [types.F32, types.F64], ids=str)
def test_libdevice_is_as_good_as_the_page_says(t: types.ElementType) -> None:
    if not any(path.is_file() for path in candidates()):
        pytest.skip("libdevice is not installed")
    if t is types.F64 and np.finfo(np.longdouble).nmant < 60:
        pytest.skip("the reference needs an 80-bit long double")
    said = table("libdevice")
    worse = [e for e in measure_libdevice(t, 10_000) if e.ulps > said[e.op, t.name] + 0.01]
    assert not worse


def test_distances() -> None:
    one = np.float32(1)
    want = np.array([1.0, 1.0, np.inf, np.nan, 0.0, 1e-45])
    got = np.array([1, np.nextafter(one, 2), -np.inf, 1, 0, 0], np.float32)
    np.testing.assert_allclose(distance(got, want, types.F32), [0, 1, np.inf, np.inf, 0, 0.7136], atol=1e-3)

"""Routines of BLAS and LAPACK come without the rest of SciPy, which takes most of a first compile to load."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from heron.hlo.meaning.scipy_part import scipy_extension
from heron.runtime.cpu import blas

assert blas.address("sgemm") and blas.lapack_address("sgeqrf")
assert "scipy.linalg" not in sys.modules, "the whole package"
kept = scipy_extension("linalg", "cython_lapack"), blas.address("dgemm")

import scipy.linalg.cython_blas, scipy.linalg.cython_lapack

assert scipy.linalg.cython_lapack is kept[0] is scipy_extension("linalg", "cython_lapack")
assert blas.address("dgemm") == kept[1]
assert scipy.linalg.inv([[2.0]]) == 0.5
print("fine")
"""


def test_without_the_package_around_it() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr

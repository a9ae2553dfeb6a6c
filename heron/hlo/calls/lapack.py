"""Routines of linear algebra by JAX's names of LAPACK, cuSOLVER and others: their options and forms.

``?`` in a target is LAPACK's type letter. Matrices are the last two dimensions, m rows of n columns; the dimensions
before them count matrices.
"""

from __future__ import annotations

import re
from typing import Any

from heron.errors import HeronError
from heron.hlo.calls.declaration import EVALUATOR, Call
from heron.hlo.ir.instruction import Instruction


def options(i: Instruction) -> dict[str, Any]:
    """The call's backend_config, ``{uplo = 76 : ui8, lower = true}``: integers as int, flags as bool."""
    return parse_options(str(i.extras.get("backend_config", "")))


def parse_options(text: str) -> dict[str, Any]:
    """`options` of a backend_config's text."""
    found: dict[str, Any] = {}
    for name, value in re.findall(r"(\w+)\s*=\s*([^,}\s]+)", text):
        if value in ("true", "false"):
            found[name] = value == "true"
        elif re.fullmatch(r"-?\d+", value):
            found[name] = int(value)
    return found


def letter(given: dict[str, Any], name: str, default: str) -> str:
    """A LAPACK option given as a character's number."""
    return chr(given[name]) if name in given else default


def is_lower(given: dict[str, Any]) -> bool:
    """Whether the lower triangle is read: LAPACK's ``uplo`` or cuSOLVER's ``lower``."""
    return given["lower"] if "lower" in given else letter(given, "uplo", "L") == "L"


def eigh_is_lower(i: Instruction) -> bool:
    """Whether a call of a symmetric eigensolver reads the lower triangle; XLA's own has numbers for a config, 0 first
    where it reads the upper one."""
    if i.custom_call_target in EIGH.targets:
        return not str(i.extras.get("backend_config", "")).strip('"').startswith("0")
    return is_lower(options(i))


def mode(i: Instruction) -> tuple[bool, bool]:
    """Of a singular value decomposition: whether vectors are wanted, and all of them.

    LAPACK's mode is N for values alone, S for as many vectors as values, A for all; cuSOLVER has two flags.
    """
    given = options(i)
    if "full_matrices" in given or "compute_uv" in given:
        return given.get("compute_uv", True), given.get("full_matrices", True)
    wanted = letter(given, "mode", "A")
    return wanted != "N", wanted == "A"


def wanted_sides(i: Instruction) -> tuple[bool, bool]:
    """Whether the left and the right eigenvectors are wanted: flags, or LAPACK's letters."""
    given = options(i)
    left, right = (given.get(s, letter(given, f"compute_{s}", "V") == "V") for s in ("left", "right"))
    return left, right


def block_of(i: Instruction) -> tuple[int, int]:
    """The first and the last row, from 1, of the block that is not a triangle yet. Raises HLO172 for others."""
    given, n = options(i), i.operands[0].shape.dims[-1]
    low, high = given.get("low", 1), given.get("high", n)
    if not (1 <= low <= high <= n or n == 0):
        what, why = f"'{i.custom_call_target}' has no rows {low} to {high}", f"the matrix has {n} rows, from 1"
        raise HeronError("HLO172", what, where=str(i), why=why)
    return low, high


def side_of_q(i: Instruction) -> tuple[bool, bool]:
    """Whether Q is the left factor, and whether its adjoint is meant."""
    given = options(i)
    return given.get("left", True), given.get("transpose", False)


def side_is_left(i: Instruction) -> bool:
    """Whether the triangular matrix is the left factor."""
    return letter(options(i), "side", "L") == "L"


# -- forms that depend on options -------------------------------------------------------------------------------------
def _trsm(i: Instruction) -> str:
    b = "[*b,n,m]" if side_is_left(i) else "[*b,m,n]"
    return f"a:T[*b,n,n], b:T{b} -> x@b:T{b}"


def _svd(i: Instruction) -> str:
    vectors, full = mode(i)
    right, left = ("n", "m") if full else ("min(m,n)", "min(m,n)")
    u, vh = (f"*b,m,{left}", f"*b,{right},n") if vectors else ("*u", "*v")  # any arrays where none are wanted
    match routine(i.custom_call_target):
        case "gesvdj" | "gesvdp" if vectors:  # they give V, not its adjoint
            vh = f"*b,n,{right}"
        case "gesvd" if options(i).get("transposed"):
            u, vh = vh, u
    return f"a:T[*b,m,n] -> left@a:T[*b,m,n], values:real(T)[*b,min(m,n)], u:T[{u}], vh:T[{vh}], info:s32[*b]"


def _eigenvalues(i: Instruction) -> str:
    """Of real matrices the values' real and imaginary parts apart."""
    if i.operands and i.operands[0].shape.element_type.is_complex:
        values, vectors = "values:T[*b,n]", "T"
    else:
        values, vectors = "real:T[*b,n], imaginary:T[*b,n]", "complex(T)"
    return f"a:T[*b,n,n] -> {values}, left:{vectors}[*b,n,n], right:{vectors}[*b,n,n], info:s32[*b]"


def _gees(i: Instruction) -> str:
    is_complex = bool(i.operands) and i.operands[0].shape.element_type.is_complex
    values = "values:T[*b,n]" if is_complex else "real:T[*b,n], imaginary:T[*b,n]"
    return f"a:T[*b,n,n] -> form@a:T[*b,n,n], vectors:T[*b,n,n], {values}, selected:s32[*b], info:s32[*b]"


def _ormqr(i: Instruction) -> str:
    rows = "m" if options(i).get("left", True) else "n"
    return f"a:T[*b,{rows},k<={rows}], tau:T[*b,k], c:T[*b,m,n] -> qc@c:T[*b,m,n]"


def _syrk(i: Instruction) -> str:
    a = "k,n" if options(i).get("transpose", False) else "n,k"
    return f"a:T[*b,{a}], c:T[*b,n,n], alpha:T[], beta:T[] -> out@c:T[*b,n,n]"


# -- computed by LAPACK and cuSOLVER ----------------------------------------------------------------------------------
def _library(name: str, targets: tuple[str, ...], form: Any) -> Call:
    return Call(name, targets, form, family="lapack", cpu="lapack", gpu="cusolver", any_order=True)


POTRF = _library(
    "potrf", ("lapack_?potrf_ffi", "cusolver_potrf_ffi"), "a:T[*b,n,n] -> factor@a:T[*b,n,n], info:s32[*b]"
)
TRSM = _library("trsm", ("lapack_?trsm_ffi", "cusolver_trsm_ffi"), _trsm)
GETRF = _library(
    "getrf", ("lapack_?getrf_ffi", "cusolver_getrf_ffi"),
    "a:T[*b,m,n] -> factors@a:T[*b,m,n], pivots:s32[*b,min(m,n)], info:s32[*b]",
)  # fmt: skip
GEQRF = _library(
    "geqrf", ("lapack_?geqrf_ffi", "cusolver_geqrf_ffi"), "a:T[*b,m,n] -> r@a:T[*b,m,n], tau:T[*b,min(m,n)]"
)
ORGQR = _library(
    "orgqr", ("lapack_?orgqr_ffi", "lapack_?ungqr_ffi", "cusolver_orgqr_ffi", "cusolver_ungqr_ffi"),
    "a:T[*b,m,n<=m], tau:T[*b,k<=n] -> q@a:T[*b,m,n]",
)  # fmt: skip
SYEVD = _library(
    "syevd", ("lapack_?syevd_ffi", "lapack_?heevd_ffi", "cusolver_syevd_ffi", "cusolver_heevd_ffi"),
    "a:T[*b,n,n] -> vectors@a:T[*b,n,n], values:real(T)[*b,n], info:s32[*b]",
)  # fmt: skip
#: XLA's own, which its client library writes and passes write out
QR = Call("qr", ("Qr", "QrDecomposition"), "a:T[*b,m,n] -> r:T[*b,m,n], tau:T[*b,min(m,n)]")
HOUSEHOLDER = Call(
    "householder", ("ProductOfElementaryHouseholderReflectors",), "a:T[*b,m,n<=m], tau:T[*b,k<=n] -> q:T[*b,m,n]"
)
EIGH = Call("eigh", ("Eigh",), "a:T[*b,n,n] -> vectors:T[*b,n,n], values:real(T)[*b,n]")
#: singular values; the targets differ in the method and in what stands in the place of V^H
GESDD = _library("gesdd", ("lapack_?gesdd_ffi", "cusolver_gesdd_ffi"), _svd)
GESVD = _library("gesvd", ("cusolver_gesvd_ffi",), _svd)
LAPACK_GESVD = _library("lapack_gesvd", ("lapack_?gesvd_ffi",), _svd)
GESVDJ = _library("gesvdj", ("cusolver_gesvdj_ffi", "cusolver_gesvdp_ffi"), _svd)


def _on_cpu(name: str, targets: tuple[str, ...], form: Any) -> Call:
    return Call(name, targets, form, family="lapack", cpu="lapack", gpu=EVALUATOR, any_order=True)


_TRIDIAGONAL = "lower:T[*b,n], diagonal:T[*b,n], upper:T[*b,n], b:T[*b,n,m] -> "
GTSV = _on_cpu(
    "gtsv", ("lapack_?gtsv_ffi",),
    _TRIDIAGONAL + "l@lower:T[*b,n], d@diagonal:T[*b,n], u@upper:T[*b,n], x@b:T[*b,n,m], info:s32[*b]",
)  # fmt: skip
GEEV = _on_cpu("geev", ("lapack_?geev_ffi", "cuhybrid_eig_real", "cuhybrid_eig_comp"), _eigenvalues)
GEES = _on_cpu("gees", ("lapack_?gees_ffi",), _gees)
GEHRD = _on_cpu("gehrd", ("lapack_?gehrd_ffi",), "a:T[*b,n,n] -> form@a:T[*b,n,n], tau:T[*b,max(0,n-1)], info:s32[*b]")
SYTRD = _on_cpu(
    "sytrd", ("lapack_?sytrd_ffi", "lapack_?hetrd_ffi", "cusolver_sytrd_ffi"),
    "a:T[*b,n,n] -> form@a:T[*b,n,n], diagonal:real(T)[*b,n], beside:real(T)[*b,max(0,n-1)],"
    " tau:T[*b,max(0,n-1)], info:s32[*b]",
)  # fmt: skip
GEQP3 = _on_cpu(
    "geqp3", ("lapack_?geqp3_ffi", "cuhybrid_geqp3"),
    "a:T[*b,m,n], pivots:s32[*b,n] -> r@a:T[*b,m,n], pivots@pivots:s32[*b,n], tau:T[*b,min(m,n)]",
)  # fmt: skip
ORMQR = _on_cpu("ormqr", ("lapack_?ormqr_ffi", "lapack_?unmqr_ffi", "cusolver_ormqr_ffi"), _ormqr)
#: the permutation that the row swaps of an LU factorisation amount to; rows are counted from 0
PIVOTS = Call(
    "pivots", ("cu_lu_pivots_to_permutation",), "pivots:s32[*b,k<=n] -> permutation:s32[*b,n]",
    family="lapack", cpu="lapack", gpu="kernel", any_order=True,
)  # fmt: skip


# -- computed by the evaluator's code on the host: such a call takes long beside the way there ------------------------
def _on_host(name: str, targets: tuple[str, ...], form: Any) -> Call:
    return Call(name, targets, form, family="lapack", cpu=EVALUATOR, gpu=EVALUATOR)


CUSOLVER_GEEV = _on_host(
    "cusolver_geev", ("cusolver_geev_ffi",),
    "a:T[*b,n,n] -> rest@a:T[*b,n,n], values:complex(T)[*b,n], left:T[*b,n,n], right:T[*b,n,n], info:s32[*b]",
)  # fmt: skip
GTSV2 = _on_host("gtsv2", ("cusparse_gtsv2_ffi",), _TRIDIAGONAL + "x@b:T[*b,n,m]")
PERTURBED = _on_host(
    "tridiagonal_perturbed", ("tridiagonal_solve_perturbed_ffi", "cu_tridiagonal_solve_perturbed"),
    _TRIDIAGONAL + "x@b:T[*b,n,m]",
)  # fmt: skip
SYRK = _on_host("syrk", ("cusolver_syrk_ffi",), _syrk)
CSRLSVQR = _on_host(
    "csrlsvqr", ("cusolver_csrlsvqr_ffi",), "data:T[e], columns:s32[e], starts:s32[n+1], b:T[n] -> x@b:T[n]"
)
CHOLESKY_UPDATE = _on_host(
    "cholesky_update", ("cu_cholesky_update_ffi",), "r:T[n,n], w:T[n] -> updated@r:T[n,n], rest@w:T[n]"
)
THREEFRY = _on_host(
    "threefry", ("cu_threefry2x32_ffi",), "k1:u32[*n], k2:u32[*n], x1:u32[*n], x2:u32[*n] -> y1:u32[*n], y2:u32[*n]"
)

CALLS = (
    POTRF, TRSM, GETRF, GEQRF, ORGQR, SYEVD, GESDD, GESVD, GESVDJ, PIVOTS, GEEV, CUSOLVER_GEEV, GEES, GEHRD, SYTRD,
    LAPACK_GESVD, GEQP3, ORMQR, GTSV, GTSV2, PERTURBED, SYRK, CSRLSVQR, CHOLESKY_UPDATE, THREEFRY,
)  # fmt: skip


def routine(target: str) -> str:
    """The routine of a target, without library and type letter: ``lapack_spotrf_ffi`` → ``potrf``; else itself."""
    match = re.fullmatch(r"(?:lapack_[sdcz]|cusolver_)(\w+)_ffi", target)
    return match[1] if match else target

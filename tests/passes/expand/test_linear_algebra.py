"""Factorisations written as loops, against the evaluator: batches, types, triangles, matrices that have no factor."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import by_name
from heron.passes.framework.checks import difference
from tests.passes.expand.test_expanders import module_of, run_pass

TYPES = ("f32", "f64", "c64", "bf16")
RNG = np.random.default_rng(4)


def random(t: str, *dims: int) -> np.ndarray:
    x = RNG.normal(size=dims) + (1j * RNG.normal(size=dims) if t.startswith("c") else 0)
    return x.astype(by_name(t).dtype)


def assert_agrees(name: str, module: Module, *inputs: np.ndarray) -> None:
    wanted = Evaluator(module).run(*inputs)
    assert run_pass(name, module)
    assert not run_pass(name, module), "a second run changed something again"
    found = Evaluator(module).run(*inputs)
    for old, new in zip(*(v if isinstance(v, tuple) else (v,) for v in (wanted, found)), strict=True):
        assert difference(old, new) is None


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("dims", [(3, 5, 5), (1, 1), (2, 0, 0), (0, 3, 3)])
def test_cholesky(t: str, lower: str, dims: tuple[int, ...]) -> None:
    shape = f"{t}[{','.join(map(str, dims))}]"
    module = module_of(f"a = {shape} parameter(0); ROOT r = {shape} cholesky(a), lower={lower}")
    x = random("c64" if t == "c64" else "f64", *dims)
    a = x @ np.swapaxes(x, -1, -2).conj() + np.eye(dims[-1]) * dims[-1]
    if dims[0] == 3:
        a[1, 2, 2] = -1  # not positive definite
    a = a.astype(by_name(t).dtype)
    a[..., ~np.tril(np.ones(dims[-2:], bool)) if lower == "true" else ~np.triu(np.ones(dims[-2:], bool))] = np.nan
    wanted = Evaluator(module).run(a)
    assert run_pass("cholesky-expander", module)
    found = Evaluator(module).run(a)
    assert difference(wanted, found) is None


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("left", ["true", "false"])
@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_solve(t: str, left: str, lower: str, transpose: str) -> None:
    b = "2,4,3" if left == "true" else "2,3,4"
    module = module_of(
        f"a = {t}[2,4,4] parameter(0); b = {t}[{b}] parameter(1); ROOT r = {t}[{b}] triangular-solve(a, b), "
        f"left_side={left}, lower={lower}, transpose_a={transpose}, unit_diagonal={'true' if t == 'f64' else 'false'}"
    )
    a = (random(t, 2, 4, 4).astype("c8" if t == "c64" else "f8") * 0.3 + 2 * np.eye(4)).astype(by_name(t).dtype)
    assert_agrees("triangular-solve-expander", module, a, random(t, *map(int, b.split(","))))


@pytest.mark.parametrize("t", ["f32", "f64", "c64"])
@pytest.mark.parametrize("dims", [(2, 5, 3), (3, 5), (4, 4), (1, 1)])
@pytest.mark.parametrize("target", ["lapack_?geqrf_ffi", "Qr", "QrDecomposition"])
def test_qr(t: str, dims: tuple[int, ...], target: str) -> None:
    target = target.replace("?", {"f32": "s", "f64": "d", "c64": "c"}[t])
    shape, taus = ",".join(map(str, dims)), ",".join(map(str, (*dims[:-2], min(dims[-2:]))))
    module = module_of(
        f"a = {t}[{shape}] parameter(0); ROOT r = ({t}[{shape}], {t}[{taus}]) custom-call(a), "
        f'custom_call_target="{target}"'
    )
    assert_agrees("qr-expander", module, random(t, *dims))


@pytest.mark.parametrize("t", ["f32", "c64"])
@pytest.mark.parametrize(("dims", "count"), [((2, 5, 3), 3), ((5, 4), 2)])
@pytest.mark.parametrize("of_xla", [False, True])
def test_orthogonal_matrix(t: str, dims: tuple[int, ...], count: int, of_xla: bool) -> None:
    name = "lapack_sorgqr_ffi" if t == "f32" else "lapack_cungqr_ffi"
    name = "ProductOfElementaryHouseholderReflectors" if of_xla else name
    shape, taus = ",".join(map(str, dims)), ",".join(map(str, (*dims[:-2], count)))
    module = module_of(
        f"a = {t}[{shape}] parameter(0); s = {t}[{taus}] parameter(1); "
        f'ROOT r = {t}[{shape}] custom-call(a, s), custom_call_target="{name}"'
    )
    assert_agrees("qr-expander", module, random(t, *dims), random(t, *dims[:-2], count))


@pytest.mark.parametrize("t", ["f32", "f64", "c64"])
@pytest.mark.parametrize("dims", [(3, 4, 4), (5, 5), (1, 1), (2, 2)])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh(t: str, dims: tuple[int, ...], uplo: str) -> None:
    routine = {"f32": "ssyevd", "f64": "dsyevd", "c64": "cheevd"}[t]
    shape, batch, real = ",".join(map(str, dims)), ",".join(map(str, dims[:-2])), "f64" if t == "f64" else "f32"
    module = module_of(
        f"a = {t}[{shape}] parameter(0); ROOT r = ({t}[{shape}], {real}[{','.join(map(str, dims[:-1]))}], s32[{batch}]) "
        f'custom-call(a), custom_call_target="lapack_{routine}_ffi", backend_config="{{uplo = {ord(uplo)} : ui8}}"'
    )
    x = random(t, *dims)
    a = x + np.swapaxes(x, -1, -2).conj()
    a[..., 0, 0] = a[..., -1, -1]  # alike: the angle is exactly 45 degrees
    values = Evaluator(module).run(a)[1]
    assert run_pass("eigh-expander", module)
    vectors, found, info = Evaluator(module).run(a)
    tolerance = 1e-10 if t == "f64" else 1e-5
    np.testing.assert_allclose(found, values, atol=tolerance * 10, rtol=tolerance)
    np.testing.assert_allclose(a @ vectors, vectors * found[..., None, :], atol=tolerance * 10)
    np.testing.assert_allclose(
        np.swapaxes(vectors, -1, -2).conj() @ vectors, np.broadcast_to(np.eye(dims[-1]), dims), atol=tolerance
    )
    assert not info.any()


@pytest.mark.parametrize("t", ["f32", "c64"])
@pytest.mark.parametrize("config", ["1,1,100,1e-6", "0,1,100,1e-6", ""])
def test_eigh_of_xla(t: str, config: str) -> None:
    """XLA's own solver reads one triangle, whatever is in the other; its config says which one."""
    stated = f', backend_config="{config}"' if config else ""
    module = module_of(
        f"a = {t}[2,4,4] parameter(0); ROOT r = ({t}[2,4,4], f32[2,4]) "
        f'custom-call(a), custom_call_target="Eigh"{stated}'
    )
    x = random(t, 2, 4, 4)
    whole = x + np.swapaxes(x, -1, -2).conj()
    keep = np.triu if config.startswith("0") else np.tril
    a = np.where(keep(np.ones((4, 4), bool)), whole, 7).astype(x.dtype)
    wanted = np.linalg.eigvalsh(whole)
    for written_out in (False, True):
        if written_out:
            assert run_pass("eigh-expander", module)
        vectors, values = Evaluator(module).run(a)
        np.testing.assert_allclose(values, wanted, atol=1e-4)
        np.testing.assert_allclose(whole @ vectors, vectors * values[..., None, :], atol=1e-4)


def _outputs(module: Module, a: np.ndarray) -> list[np.ndarray]:
    return list(Evaluator(module).run(a))


@pytest.mark.parametrize("t", ["f32", "f64", "c64"])
def test_a_scaled_matrix_has_the_same_factors(t: str) -> None:
    """Bit for bit, up to the ends of the range: squares neither overflow nor vanish."""
    letter = {"f32": "s", "f64": "d", "c64": "c"}[t]
    module = module_of(
        f"a = {t}[5,3] parameter(0); ROOT r = ({t}[5,3], {t}[3]) custom-call(a), "
        f'custom_call_target="lapack_{letter}geqrf_ffi"'
    )
    assert run_pass("qr-expander", module)
    a = random(t, 5, 3)
    both, taus = _outputs(module, a)
    most = 900 if t == "f64" else 110
    for power in (-most, most):
        factor = np.float64(2.0) ** power
        scaled, same = _outputs(module, (a * factor).astype(a.dtype))
        np.testing.assert_array_equal(same, taus)
        np.testing.assert_array_equal(np.tril(scaled, -1), np.tril(both, -1))
        np.testing.assert_array_equal(np.triu(scaled), np.triu(both * factor).astype(a.dtype))


@pytest.mark.parametrize("t", ["f32", "f64", "c64"])
def test_eigenvalues_at_the_ends_of_the_range(t: str) -> None:
    routine, real = {"f32": ("ssyevd", "f32"), "f64": ("dsyevd", "f64"), "c64": ("cheevd", "f32")}[t]
    module = module_of(
        f"a = {t}[3,3,3] parameter(0); ROOT r = ({t}[3,3,3], {real}[3,3], s32[3]) "
        f'custom-call(a), custom_call_target="lapack_{routine}_ffi", backend_config="{{uplo = 76 : ui8}}"'
    )
    assert run_pass("eigh-expander", module)
    x = random(t, 3, 3, 3)
    a = x + np.swapaxes(x, -1, -2).conj()
    vectors, values, _ = _outputs(module, a)
    most = 900 if t == "f64" else 110
    for power in (-most, most):
        factor = np.float64(2.0) ** power
        same, scaled, _ = _outputs(module, (a * factor).astype(a.dtype))
        np.testing.assert_array_equal(same, vectors)
        np.testing.assert_array_equal(scaled, (values * factor).astype(values.dtype))
    for wrong in (np.nan, np.inf):  # one matrix of three
        spoilt = a.copy()
        spoilt[1, 2, 1] = wrong
        v, found, _ = _outputs(module, spoilt)
        assert np.isnan(found[1]).all() and np.isnan(v[1]).all()
        np.testing.assert_array_equal(found[[0, 2]], values[[0, 2]])

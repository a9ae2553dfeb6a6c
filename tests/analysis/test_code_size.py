"""How much code kernels become: no kernel has more than fusion allows, and a program's code grows as the program does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron import targets
from heron.analysis.cost.code_size import CPU_CODE, code_limit, code_of, fusion_code, op_code
from heron.backends.compiler import Compilation
from heron.codegen.llvm.assemble import assemble, knows
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.trace import Trace

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

#: what a kernel may have beyond the budget: reading its inputs, and views that cost next to nothing
ROOM = 2.2


def kernels(module: Module, target: str) -> list[float]:
    """LLVM instructions of each kernel."""
    machine = targets.get(target)
    made = Compilation(module, machine, Options(), Trace()).passes("fused")
    return [fusion_code(i, code_limit(machine)) for i in made.instructions() if i.opcode == "fusion"]


def lowered(function: Callable[..., Any], *arguments: Any) -> Module:
    return heron.from_jax(function, *arguments)


def f32(*shape: int) -> np.ndarray:
    return (0.1 * np.random.default_rng(sum(shape)).standard_normal(shape)).astype(np.float32)


def affine(p: Any, q: Any) -> Any:
    return p[0] * q[0], p[1] * q[0] + q[1]


def scan(n: int) -> Module:
    return lowered(lambda a, b: lax.associative_scan(affine, (a, b)), f32(n, 8), f32(n, 8))


def scan_gradient(n: int) -> Module:
    def loss(a: Any, b: Any) -> Any:
        return lax.associative_scan(affine, (a, b))[1].sum()

    return lowered(jax.grad(loss, (0, 1)), f32(n, 8), f32(n, 8))


def complex_scan(n: int) -> Module:
    return lowered(lambda a, b: lax.associative_scan(lambda p, q: p * q, a + 1j * b), f32(n, 3), f32(n, 3))


def tower(n: int) -> Module:
    def run(v: Any) -> Any:
        for k in range(n):
            v = jnp.where(v > k * 0.01, v * 1.01, jnp.sin(v))
        return v

    return lowered(run, f32(500))


def steps(n: int) -> Module:
    def run(y: Any) -> Any:
        for _ in range(n):
            k1 = jnp.sin(y) + y * y
            k2 = jnp.cos(y + 0.1 * k1)
            y = y + 0.01 * (k1 + 2 * k2 * jnp.exp(-k1 * k1))
        return y

    return lowered(run, f32(500))


def pieces(n: int) -> Module:
    return lowered(lambda a: jnp.concatenate([jnp.roll(a, j) * j for j in range(n)]), f32(57))


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize(
    ("program", "sizes"),
    [
        (scan, (8, 64, 512, 4096)),
        (scan_gradient, (8, 32, 128, 512)),
        (complex_scan, (8, 64, 300, 2000)),
        (tower, (10, 40, 160)),
        (steps, (5, 20, 80)),
        (pieces, (4, 16, 64)),
    ],
)
def test_code_grows_as_the_program_does(program: Callable[[int], Module], sizes: tuple[int, ...], target: str) -> None:
    """A step along the series adds at most so much code for each instruction it adds as any program has.

    A GPU's loops are never written out, so that copies count which LLVM would merge on a CPU.
    """
    most = 400 if targets.get(target).is_gpu else 250
    programs = [program(n) for n in sizes]
    counts = [m.instruction_count() for m in programs]
    code = [kernels(m, target) for m in programs]
    assert all(k <= ROOM * code_limit(targets.get(target)).most for kernels_ in code for k in kernels_)
    for n in range(1, len(sizes)):
        more, longer = sum(code[n]) - sum(code[n - 1]), counts[n] - counts[n - 1]
        assert more <= most * longer, (sizes[n], more, longer)


#: ops of a deep program, by how many values they read
UNARY = "sine cosine exponential tanh negate log-plus-one".split()
BINARY = "add multiply subtract maximum".split()


@st.composite
def deep(draw: st.DrawFn) -> str:
    """A program of elementwise ops on four arrays, each reading one of the last few; now and then a shift."""
    lines = [f"  v{n} = f32[128] parameter({n})" for n in range(4)]
    for n in range(4, 4 + draw(st.integers(50, 250))):
        kind = draw(st.integers(0, 9))
        a, b = (f"v{n - 1 - draw(st.integers(0, 3))}" for _ in range(2))
        if kind == 0:
            lines.append(f"  s{n} = f32[127] slice({a}), slice={{[1:128]}}\n  z{n} = f32[] constant(1)")
            lines.append(f"  v{n} = f32[128] pad(s{n}, z{n}), padding=0_1")
        elif kind < 5:
            lines.append(f"  v{n} = f32[128] {draw(st.sampled_from(UNARY))}({a})")
        else:
            lines.append(f"  v{n} = f32[128] {draw(st.sampled_from(BINARY))}({a}, {b})")
    return "HloModule deep\n\nENTRY main {\n" + "\n".join(lines) + f"\n  ROOT r = f32[128] negate({a})\n}}\n"


@settings(max_examples=25, deadline=None)
@given(deep(), st.sampled_from(["cpu", "sm_90"]))
def test_no_kernel_is_longer_than_fusion_allows(text: str, target: str) -> None:
    assert all(code <= ROOM * code_limit(targets.get(target)).most for code in kernels(heron.parse(text), target))


def test_cut_programs_compute_the_same() -> None:
    for module in (scan_gradient(32), complex_scan(40), tower(30), steps(30)):
        arrays = [f32(*p.shape.dims) for p in module.entry.parameters]
        wanted = evaluate(module, *arrays)
        got = heron.compile(module)(*arrays)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_what_is_read_in_several_places_counts_as_often() -> None:
    text = """
HloModule m

ENTRY e {
  x = f32[8] parameter(0)
  s = f32[8] sine(x)
  t = f32[8] add(s, s)
  r = f32[8] reverse(t), dimensions={0}
  ROOT c = f32[16] concatenate(t, r), dimensions={0}
}
"""
    c = heron.parse(text).entry
    by_name = {i.name: i for i in c.instructions}
    once = code_of([by_name["t"]], c.instructions, CPU_CODE)
    assert once == sum(op_code(by_name[n], CPU_CODE) for n in "xst")
    assert code_of([c.root], c.instructions, CPU_CODE) == 2 * once + sum(
        op_code(i, CPU_CODE) for i in (by_name["r"], c.root)
    )


def test_scalars_are_computed_once() -> None:
    text = "HloModule m\n\nENTRY e {\n  x = f32[] parameter(0)\n  s = f32[] sine(x)\n"
    text += "".join(f"  b{n} = f32[{n + 2}] broadcast(s), dimensions={{}}\n" for n in range(4))
    text += "  ROOT c = f32[14] concatenate(b0, b1, b2, b3), dimensions={0}\n}\n"
    c = heron.parse(text).entry
    sine = next(i for i in c.instructions if i.opcode == "sine")
    assert code_of([c.root], c.instructions, CPU_CODE) < 2 * op_code(sine, CPU_CODE)


def hashes(n: int) -> Module:
    """Hashes of all prefixes, modulo a prime: each element is read at many places."""

    def join(a: Any, b: Any) -> Any:
        return a[0] * b[0] % np.uint32(65521), (a[1] * b[0] + b[1]) % np.uint32(65521)

    text = np.arange(n, dtype=np.uint32)
    return lowered(lambda t: lax.associative_scan(join, (jnp.full(n, 257, jnp.uint32), t))[1], text)


def mean_of_gamma(n: int) -> Module:
    """A sum along rows of much code, whose loop a thread goes around a few times."""
    return lowered(lambda x: jax.scipy.special.gammaln(x * x + jnp.sin(x) + 2.0).sum(), f32(n))


def squares(n: int) -> Module:
    """Quotients and roots, each of which an assembler writes out."""

    def run(x: Any, y: Any) -> Any:
        for k in range(n):
            x = x / (y + float(k)) + jnp.sqrt(y * y + x)
        return x

    return lowered(run, f32(1 << 18), f32(1 << 18))


@pytest.mark.skipif(not knows("sm_90"), reason="no assembler for sm_90 is here (pip install '.[ptx]')")
@pytest.mark.parametrize("module", [hashes(500), hashes(40_000), mean_of_gamma(3000), squares(40), scan_gradient(32)])
def test_machine_code_stays_within_bounds(module: Module) -> None:
    target = targets.get("sm_90")
    used = assemble(heron.compile(module, target).ptx, target.llvm_cpu).resources  # type: ignore[attr-defined]
    assert max(r.code_bytes for r in used.values()) <= target.code_bytes
    assert max(r.spill_bytes for r in used.values()) == 0


@pytest.mark.skipif(not knows("sm_90"), reason="no assembler for sm_90 is here (pip install '.[ptx]')")
def test_joined_kernels_compute_what_they_share_once() -> None:
    """The updates of 24 parameters, which all need two powers of the step, have their code once."""

    def update(step: Any, arrays: Any) -> Any:
        return [a / (1 - 0.9**step) + a / (1 - 0.999**step) for a in arrays]

    sizes = range(64, 64 + 24)
    module = lowered(update, np.float32(3), [f32(n) for n in sizes])
    executable = heron.compile(module, "sm_90")
    assert len(executable.kernels) == 1
    (used,) = assemble(executable.ptx, "sm_90").resources.values()  # type: ignore[attr-defined]
    one = heron.compile(lowered(update, np.float32(3), [f32(64)]), "sm_90")
    (alone,) = assemble(one.ptx, "sm_90").resources.values()  # type: ignore[attr-defined]
    assert used.code_bytes < len(sizes) * alone.code_bytes / 3


def test_functions_of_complex_numbers_have_the_code_that_they_compile_to() -> None:
    """Those of pairs of f64 are up to four times as long as the factor of other ops would make them."""
    limit = code_limit(targets.get("sm_90"))

    def code(op: str, element: str) -> float:
        text = f"HloModule m\n\nENTRY e {{\n  x = {element}[64] parameter(0)\n  ROOT r = {element}[64] {op}(x)\n}}\n"
        return op_code(heron.parse(text).entry.root, limit)

    assert 600 < code("asin", "c128") < 800 and 600 < code("acos", "c128") < 800
    assert code("rsqrt", "c128") > 20 * code("rsqrt", "f64")
    for op in ("asin", "tanh", "sqrt", "exponential", "log"):
        assert code(op, "f32") < code(op, "c64") < code(op, "c128")

"""Programs of bounded sizes, compiled, on inputs of every size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import Evaluator
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.dynamic.fixed_sizes import fixed_sizes
from heron.passes.dynamic.model.interface import fix_interface
from heron.passes.framework.context import PassContext
from tests.evaluator.test_dynamic import AGREED, HIDDEN, P, Q, module_text
from tests.passes.dynamic.programs import PROGRAMS, SIZES, inputs, text
from tests.passes.dynamic.test_dynamic_padder import LOOP, flat, meant

SUMS = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
less { la = f32[] parameter(0) lb = f32[] parameter(1) ROOT lc = pred[] compare(la, lb), direction=LT }
ENTRY e {
  p = (f32[<=6,3], f32[4]) parameter(0)
  y = f32[3,<=5] parameter(1)
  x = f32[<=6,3] get-tuple-element(p), index=0
  w = f32[4] get-tuple-element(p), index=1
  z = f32[] constant(0)
  s = f32[<=6] reduce(x, z), dimensions={1}, to_apply=add
  r = f32[3] reduce(x, z), dimensions={0}, to_apply=add
  o = f32[<=6,3] sort(x), dimensions={0}, to_apply=less
  d = f32[<=6,<=5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[<=15] reshape(y)
  n = s32[] get-dimension-size(x), dimensions={0}
  inner = (f32[<=6], f32[3]) tuple(s, r)
  ROOT t = ((f32[<=6], f32[3]), f32[<=6,3], f32[<=6,<=5], f32[<=15], s32[], f32[4]) tuple(inner, o, d, e, n, w)
}"""


def assert_agrees(executable: Any, module: Any, *inputs: np.ndarray) -> None:
    wanted, found = flat(Evaluator(module).run(*inputs)), flat(executable(*inputs))
    for n, (old, new) in enumerate(zip(wanted, found, strict=True)):
        np.testing.assert_allclose(new, old, rtol=2e-5, atol=1e-6, err_msg=f"output {n}", strict=True)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_inputs_and_results_of_any_size(target: str) -> None:
    module = parse(SUMS)
    executable = compile(module, target)
    rng = np.random.default_rng(0)
    for rows, columns in ((6, 5), (4, 2), (1, 0), (0, 3)):
        shapes = (rows, 3), (4,), (3, columns)
        assert_agrees(executable, module, *(rng.normal(size=s).astype(np.float32) for s in shapes))
    with pytest.raises(HeronError, match="RUN003"):
        executable(np.zeros((7, 3), np.float32), np.zeros(4, np.float32), np.zeros((3, 2), np.float32))


def test_every_op_on_the_cpu() -> None:
    lines = "\n".join(line for line in AGREED.strip().splitlines())
    module = parse(module_text(lines, HIDDEN))
    executable = compile(module, "cpu", Options(check="values"))
    for n in (2, 3, 4):
        assert_agrees(executable, module, P, np.array(n, np.int32), Q)


def test_loop_on_the_cpu() -> None:
    module = parse(LOOP)
    executable = compile(module, "cpu")
    for n in (0, 2, 5):
        assert_agrees(executable, module, np.arange(n, dtype=np.float32))


#: ops that have no code on a CPU, whatever their sizes
NO_CODE = {"scanned", "scanned_back", "scanned_columns", "carried", "all_reduced"}


#: a few of every kind on the simulated GPU, which takes its time
ON_SIM = "argmax windows_in_two_ops outer concatenated two_sorted scattered_parts selected solved trained".split()
RUNS = [("cpu", name) for name in PROGRAMS if name not in NO_CODE] + [("sim:sm_90", name) for name in ON_SIM]


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")  # of NumPy, of no rows
@pytest.mark.parametrize(("target", "name"), RUNS)
def test_every_program(target: str, name: str) -> None:
    module = parse(text(PROGRAMS[name]))
    executable = compile(module, target)
    for sizes in SIZES:
        arrays = inputs(*sizes)
        if (wanted := meant(module, arrays)) is None:
            with pytest.raises(HeronError, match="RUN004"):
                executable(*arrays)
            continue
        for n, (old, new) in enumerate(zip(wanted, flat(executable(*arrays)), strict=True)):
            np.testing.assert_allclose(new, old, rtol=2e-5, atol=1e-6, err_msg=f"output {n} at {sizes}", strict=True)


EDGES = [
    "ROOT x = f32[<=4] parameter(0)",
    "ROOT x = (f32[<=4], (s32[], f32[2,<=3])) parameter(0)",
    "x = f32[<=4] parameter(0) ROOT c = s32[] constant(3)",
    "x = f32[<=4] parameter(0) ROOT t = (f32[<=4], f32[<=4]) tuple(x, x)",
    "x = (f32[<=4], f32[2]) parameter(0) ROOT r = f32[2] get-tuple-element(x), index=1",
]


@pytest.mark.parametrize("body", EDGES)
def test_parameters_straight_through(body: str) -> None:
    module = parse(f"HloModule m\nENTRY e {{ {body} }}")
    leaves = [s for _, s in module.entry.parameters[0].shape.leaves()]
    executable = compile(module, "cpu")
    for less in (0, 1, 2):
        dims = [tuple(n - less if s.dynamic and s.dynamic[d] else n for d, n in enumerate(s.dims)) for s in leaves]
        arrays = [np.ones(d, s.element_type.dtype) for d, s in zip(dims, leaves, strict=True)]
        for old, new in zip(flat(Evaluator(module).run(*arrays)), flat(executable(*arrays)), strict=True):
            np.testing.assert_array_equal(new, old, strict=True)


ALIASED = """HloModule m, input_output_alias={ %s: (0, {}, may-alias) }, buffer_donor={ (1, {}) }
ENTRY e { x = f32[<=8] parameter(0) y = f32[<=8] parameter(1) z = f32[<=8] add(x, y) ROOT r = %s }"""


@pytest.mark.parametrize(
    ("output", "root"), [("{}", "f32[<=8] negate(z)"), ("{1}", "(f32[<=8], f32[<=8]) tuple(y, z)")]
)
def test_results_keep_the_memory_they_share(output: str, root: str) -> None:
    module = parse(ALIASED % (output, root))
    fixed = module.clone()
    fixed_sizes().run(fixed, PassContext())
    fix_interface(fixed)
    verify(fixed)
    alias = fixed.input_output_aliases.aliased_output(0)
    assert alias is not None and alias.output == ((0,) if output == "{}" else (1,))
    assert fixed.buffer_donors.is_donor(1)
    executable = compile(module, "cpu")
    for n in (0, 5, 8):
        x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
        assert_agrees(executable, module, x, y)

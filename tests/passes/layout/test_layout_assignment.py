from __future__ import annotations

from heron.hlo.text import parse
from heron.hlo.verifier import VerifierOptions, verify
from heron.passes.context import PassContext
from heron.passes.layout.layout_assignment import LayoutAssignment
from tests.support import program


def test_every_layout_inside_is_the_default_one() -> None:
    for name in ("transpose_chain", "linalg_lapack", "heat_while"):
        module = parse(program(name).read_text())
        seen = module.parameter_shapes, module.result_shape
        LayoutAssignment().run(module, PassContext())
        verify(module, VerifierOptions(layout_sensitive=True))
        edge = {module.entry.root, *module.entry.root.operands, *module.entry.parameters}
        for i in module.instructions():
            if i not in edge:
                assert i.shape is i.shape.with_default_layout(), str(i)
        assert (module.parameter_shapes, module.result_shape) == seen
        assert not LayoutAssignment().run(module, PassContext())


def test_transposes_at_the_edge_are_views() -> None:
    module = parse("""HloModule m, entry_computation_layout={(f32[2,3,4]{0,2,1})->f32[4,2,3]{1,2,0}}

ENTRY main {
  x = f32[2,3,4]{2,1,0} parameter(0)
  t = f32[3,4,2]{2,1,0} transpose(x), dimensions={1,2,0}
  n = f32[3,4,2]{2,1,0} negate(t)
  ROOT u = f32[4,2,3]{2,1,0} transpose(n), dimensions={1,2,0}
}
""")
    LayoutAssignment().run(module, PassContext())
    opcodes = [i.opcode for i in module.entry.post_order()]
    assert opcodes == ["parameter", "bitcast", "negate", "transpose", "bitcast"]
    assert module.entry.root.operands[0].shape.dims == (4, 3, 2)


def test_a_root_that_only_says_so_gets_its_layout() -> None:
    module = parse("""HloModule m, entry_computation_layout={(f32[2,3]{1,0})->((f32[2,3]{0,1}))}

ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  n = f32[2,3]{1,0} negate(x)
  t = (f32[2,3]{0,1}) tuple(n)
  ROOT r = ((f32[2,3]{0,1})) tuple(t)
}
""")
    LayoutAssignment().run(module, PassContext())
    verify(module, VerifierOptions(layout_sensitive=True))
    assert module.entry.root.operands[0].operands[0].opcode == "bitcast"

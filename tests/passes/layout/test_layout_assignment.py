from __future__ import annotations

from heron.hlo.text import parse
from heron.passes.context import PassContext
from heron.passes.layout.layout_assignment import LayoutAssignment
from tests.support import program


def test_every_layout_is_the_default_one() -> None:
    for name in ("transpose_chain", "linalg_lapack", "heat_while"):
        module = parse(program(name).read_text())
        LayoutAssignment().run(module, PassContext())
        for i in module.instructions():
            for _, leaf in i.shape.leaves():
                assert not leaf.is_array or (leaf.layout is not None and leaf.layout.is_default), str(i)
        assert module.entry_layout is None or module.entry_layout[1] is module.entry_layout[1].with_default_layout()
        assert not LayoutAssignment().run(module, PassContext())

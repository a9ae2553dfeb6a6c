"""Block kernels as text, in the spelling of Triton's parser."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import ModuleOp

#: xDSL writes one type where MLIR writes the condition's, too
_SELECT = re.compile(r"(arith\.select [^:]*: )(tensor<(?:\d+x)+)([^>]+)>")


def to_ttir(module: ModuleOp) -> str:
    """The text that Triton compiles."""
    return _SELECT.sub(r"\1\2i1>, \2\3>", str(module)) + "\n"

"""The xDSL context that knows every dialect a kernel may use: for parsing kernel text and for tools."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.dialects import arith, builtin, complex, func, gpu, llvm, math, scf, tensor, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from heron.codegen.dialects.xla_gpu import XlaGpu
from heron.errors import HeronError


@cache
def context() -> Context:
    """One shared context with builtin, func, arith, math, complex, scf, tensor, vector, gpu, llvm and xla_gpu."""
    ctx = Context()
    for dialect in (
        builtin.Builtin,
        func.Func,
        arith.Arith,
        math.Math,
        complex.Complex,
        scf.Scf,
        tensor.Tensor,
        vector.Vector,
        gpu.GPU,
        llvm.LLVM,
        XlaGpu,
    ):
        ctx.load_dialect(dialect)
    return ctx


def parse_kernel(text: str, name: str = "<kernel>") -> ModuleOp:
    """The `builtin.module` that `text` spells.

    Raises:
        HeronError: GEN110 when the text does not parse, GEN111 when an op breaks its rules.
    """
    try:
        module = Parser(context(), text, name).parse_module()
        module.verify()
    except (ParseError, ValueError) as error:  # xDSL raises ValueError for some bad literals
        raise HeronError("GEN110", "kernel text does not parse", where=name, why=str(error)) from None
    except VerifyException as error:
        raise HeronError("GEN111", "kernel is not valid", where=name, why=str(error)) from None
    return module

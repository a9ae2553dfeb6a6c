"""The xDSL context that knows every dialect a kernel may use: for parsing kernel text and for tools."""

from __future__ import annotations

import re
from functools import cache

from xdsl.context import Context
from xdsl.dialects import arith, builtin, complex, func, gpu, llvm, math, scf, tensor, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from heron.codegen.ir.dialects.triton import Triton
from heron.codegen.ir.dialects.xla_gpu import XlaGpu
from heron.errors import HeronError, Span


@cache
def context() -> Context:
    """One shared context with builtin, func, arith, math, complex, scf, tensor, vector, gpu, llvm, xla_gpu and tt."""
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
        Triton,
    ):
        ctx.load_dialect(dialect)
    return ctx


#: comments, and strings with what ends them
_STRING = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\[nfvtr"\\]|\\[0-9A-Fa-f]{2})*("|)')


def parse_kernel(text: str, name: str = "<kernel>") -> ModuleOp:
    """The `builtin.module` that `text` spells.

    Raises:
        HeronError: GEN110 where the text does not parse, GEN111 when an op breaks its rules.
    """
    for string in _STRING.finditer(text):  # xDSL's lexer takes exponential time over a string that does not end
        if string[1] == "":
            raise _unparsed("the string does not end on its line", text, name, string.start(), string.end())
    parser = Parser(context(), text, name)
    try:
        module = parser.parse_module()
        module.verify()
    except ParseError as error:
        raise _unparsed(error.msg, text, name, error.span.start, error.span.end) from None
    except VerifyException as error:
        raise HeronError("GEN111", "kernel is not valid", where=name, why=_last_line(error)) from None
    except RecursionError:
        raise _unparsed("regions or attributes are nested too deeply", text, name, parser.pos) from None
    except Exception as error:  # xDSL checks many literals and attributes by whatever Python raises for them
        raise _unparsed(f"{type(error).__name__}: {error}", text, name, parser.pos) from None
    return module


def _unparsed(why: str, text: str, name: str, start: int, end: int = 0) -> HeronError:
    """GEN110 at an offset of the text."""
    start = min(start, len(text))
    first = text.rfind("\n", 0, start) + 1
    line = text[first:].partition("\n")[0]
    span = Span(name, text.count("\n", 0, start) + 1, start - first + 1, max(1, end - start), line)
    return HeronError("GEN110", "kernel text does not parse", where=span, why=why.strip())


def _last_line(error: VerifyException) -> str:
    """The last line of the message, without xDSL's print of the whole operation."""
    lines = [line.strip() for line in str(error).splitlines()]
    marked = [line.lstrip("^ ") for line in lines if line.startswith("^")]
    return next((line for line in [*marked, *reversed(lines)] if line and set(line) - set("^-| ")), "")

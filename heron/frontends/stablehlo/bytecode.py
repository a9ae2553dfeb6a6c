"""MLIR bytecode and StableHLO's portable artifacts, through jaxlib's MLIR: bytes to the text the importer reads.

The bytecode's encoding follows MLIR's version, so it is left to MLIR itself. jaxlib is imported when bytecode is met.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from functools import cache
from math import prod
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.frontends.stablehlo.constants import ELSEWHERE

#: the first bytes of bytecode
MAGIC = b"ML\xefR"
#: the dialect portable artifacts are written in, among the names bytecode begins with
_ARTIFACT = b"vhlo\0"
#: exit code of the other process for bytes it refuses
_REFUSED = 2
#: bytes from which a module may have constants that are worth taking out, and the elements that make it so
_LONG, _MANY = 1 << 18, 4096
#: types whose constants MLIR gives as arrays
_READ = frozenset("f16 f32 f64 i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64".split())
#: its message begins after this, and MLIR's own output ends
_MARK = "\x00"
#: held by who uses the context that stays: it has no locks of its own
_LOCK = Lock()


def to_text(data: bytes, filename: str = "<bytes>", *, trusted: bool = False) -> str:
    """The StableHLO text of a module in bytecode or of a portable artifact, locations included.

    Damaged bytecode can end the process that reads it, so another one does, unless the bytes are `trusted` to be what
    MLIR has just written.

    Raises SHLO020 (no jaxlib), SHLO021 (the bytes are damaged, or of a later version).
    """
    return _text(data, filename, trusted=True) if trusted else _text_by_another_process(data, filename)


def to_parts(data: bytes, filename: str = "<bytes>") -> tuple[str, list[np.ndarray]]:
    """The text of a module that MLIR has just written, and the values of long constants, which the text leaves out.

    Raises SHLO020, SHLO021 as `to_text` does.
    """
    if len(data) < _LONG:
        return _text(data, filename, trusted=True), []
    mlir = _mlir()
    try:
        module = _module(data, _context(), trusted=True)  # a context keeps all it ever read: not the one that stays
        arrays = _taken_out(mlir.ir, module)
        text = module.operation.get_asm(enable_debug_info=True, large_elements_limit=_MANY if arrays else None)
        if text.count("__elided__") != len(arrays):  # something else is long, too
            text = module.operation.get_asm(enable_debug_info=True)
    except Exception as error:
        raise _refused(error, _what(filename), filename) from None
    return text, arrays


def _taken_out(ir: Any, module: Any) -> list[np.ndarray]:
    """The values of long constants, each of which is marked with its number."""
    arrays: list[np.ndarray] = []

    def visit(op: Any) -> Any:
        if op.name == "stablehlo.constant":
            kind = op.results[0].type
            if prod(kind.shape) > _MANY and str(kind.element_type) in _READ and not op.attributes["value"].is_splat:
                with op.context:
                    op.attributes[ELSEWHERE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(arrays))
                arrays.append(np.array(op.attributes["value"]))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return arrays


def _text(data: bytes, filename: str, trusted: bool = False) -> str:
    mlir = _mlir()
    try:
        with _LOCK:
            module = _module(data, mlir.context, trusted)
            text: str = module.operation.get_asm(enable_debug_info=True, assume_verified=True)  # reading it verified it
            del module
            return text
    except Exception as error:  # jaxlib raises several types, none of them documented
        raise _refused(error, _what(filename), filename) from None


def _module(data: bytes, context: Any, trusted: bool) -> Any:
    """The module in the bytes. Errors are raised, not printed: what reads artifacts prints them, so that bytes are read
    ahead of it that are not `trusted`."""
    mlir = _mlir()
    is_artifact = _ARTIFACT in data
    module = None if trusted and is_artifact else mlir.ir.Module.parse(data, context)
    return mlir.stablehlo.deserialize_portable_artifact(context, data) if is_artifact else module


def _text_by_another_process(data: bytes, filename: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", f"from {__name__} import _answer; _answer()"]
    done = subprocess.run(command, input=data, capture_output=True, env=environment, check=False)
    if done.returncode == 0:
        return done.stdout.decode()
    _mlir()  # raises where jaxlib is what is missing
    said = done.stderr.decode(errors="replace").rpartition(_MARK)[2]
    why = said if done.returncode == _REFUSED else "the bytes are damaged"
    raise _refused(ValueError(why), _what(filename), filename)


def _answer() -> None:
    """The main function of the other process: bytes in, text or the reason for a refusal out."""
    try:
        text = _text(sys.stdin.buffer.read(), "<stdin>")
    except HeronError as error:
        sys.stderr.write(f"{_MARK}{error.why or error.what}")
        sys.exit(_REFUSED)
    sys.stdout.buffer.write(text.encode())


def upgraded(text: str, filename: str = "<text>") -> str:
    """StableHLO text of a text in VHLO, the dialect portable artifacts are written in. Raises SHLO020, SHLO021."""
    mlir = _mlir()
    try:
        out = io.BytesIO()
        with _LOCK:
            mlir.ir.Module.parse(text, mlir.context).operation.write_bytecode(out)
    except Exception as error:
        raise _refused(error, f"'{filename}' is no VHLO this jaxlib can read", filename) from None
    return to_text(out.getvalue(), filename, trusted=True)


def _what(filename: str) -> str:
    return f"'{filename}' is no StableHLO bytecode this jaxlib can read"


def _refused(error: Exception, what: str, filename: str) -> HeronError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    why = "; ".join(lines[:3])[:300] or type(error).__name__
    hint = "is the file cut off, or written by a newer StableHLO than this jaxlib knows?"
    return HeronError("SHLO021", what, where=filename, why=why, hint=hint)


@cache
def _mlir() -> Any:
    """jaxlib's bindings, and a context for all that is short."""
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo

        return SimpleNamespace(ir=ir, stablehlo=stablehlo, context=_context())
    except ImportError as error:
        raise HeronError(
            "SHLO020",
            "bytecode is read through jaxlib, which is not installed",
            why=str(error),
            hint="pip install 'heron[jax]', or give the program as StableHLO text",
        ) from None


def _context() -> Any:
    """A context with the dialects of StableHLO programs."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.enable_multithreading(False)  # to wake its threads takes longer than what they would do
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return context

"""MLIR bytecode and StableHLO's portable artifacts, through jaxlib's MLIR: bytes to the text the importer reads.

The bytecode's encoding follows MLIR's version, so it is left to MLIR itself. jaxlib is imported when bytecode is met.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from types import SimpleNamespace
from typing import Any

from heron.errors import HeronError

#: the first bytes of bytecode
MAGIC = b"ML\xefR"
#: the dialect portable artifacts are written in, among the names bytecode begins with
_ARTIFACT = b"vhlo\0"
#: exit code of the other process for bytes it refuses
_REFUSED = 2
#: what it says begins behind this, and what MLIR prints by itself ends
_MARK = "\x00"


def to_text(data: bytes, filename: str = "<bytes>", *, trusted: bool = False) -> str:
    """The StableHLO text of a module in bytecode or of a portable artifact, locations included.

    Damaged bytecode can end the process that reads it, so another one does, unless the bytes are `trusted` to be what
    MLIR has just written.

    Raises SHLO020 (no jaxlib), SHLO021 (the bytes are damaged, or of a later version).
    """
    return _text(data, filename) if trusted else _text_by_another_process(data, filename)


def _text(data: bytes, filename: str) -> str:
    mlir = _mlir()
    try:
        module = mlir.ir.Module.parse(data, mlir.context)  # what is wrong is raised here, and not printed
        if _ARTIFACT in data:
            module = mlir.stablehlo.deserialize_portable_artifact(mlir.context, data)
        return module.operation.get_asm(enable_debug_info=True)
    except Exception as error:  # jaxlib raises several types, none of them documented
        raise _refused(error, _what(filename), filename) from None


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
    """What the other process runs: bytes in, text or the reason out."""
    try:
        text = _text(sys.stdin.buffer.read(), "<stdin>")
    except HeronError as error:
        sys.stderr.write(f"{_MARK}{error.why or error.what}")
        sys.exit(_REFUSED)
    sys.stdout.buffer.write(text.encode())


def upgraded(text: str, filename: str = "<text>") -> str:
    """StableHLO text of a text in VHLO, the dialect portable artifacts are written in. Raises SHLO020, SHLO021."""
    import io

    mlir = _mlir()
    try:
        out = io.BytesIO()
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
    """jaxlib's bindings, and a context with the dialects of StableHLO programs."""
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import chlo, sdy, stablehlo
    except ImportError as error:
        raise HeronError(
            "SHLO020",
            "bytecode is read through jaxlib, which is not installed",
            why=str(error),
            hint="pip install 'heron[jax]', or give the program as StableHLO text",
        ) from None
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return SimpleNamespace(ir=ir, stablehlo=stablehlo, context=context)

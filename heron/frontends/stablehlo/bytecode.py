"""MLIR bytecode and StableHLO's portable artifacts, through jaxlib's MLIR: bytes to the text the importer reads.

The bytecode's encoding follows MLIR's version, so it is left to MLIR itself. jaxlib is imported when bytecode is met.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from heron.errors import HeronError

#: the first bytes of bytecode
MAGIC = b"ML\xefR"
#: the producer's name in the header of a portable artifact
_ARTIFACT = b"StableHLO_v"


def to_text(data: bytes, filename: str = "<bytes>") -> str:
    """The StableHLO text of a module in bytecode or of a portable artifact, locations included.

    Raises SHLO020 (no jaxlib), SHLO021 (the bytes are damaged, or of a later version).
    """
    mlir = _mlir()
    try:
        module = mlir.ir.Module.parse(data, mlir.context)  # what is wrong is raised here, and not printed
        if _ARTIFACT in data[:32]:
            module = mlir.stablehlo.deserialize_portable_artifact(mlir.context, data)
        return module.operation.get_asm(enable_debug_info=True)
    except Exception as error:  # jaxlib raises several types, none of them documented
        raise _refused(error, f"'{filename}' is no StableHLO bytecode this jaxlib can read", filename) from None


def upgraded(text: str, filename: str = "<text>") -> str:
    """StableHLO text of a text in VHLO, the dialect portable artifacts are written in. Raises SHLO020, SHLO021."""
    import io

    mlir = _mlir()
    try:
        out = io.BytesIO()
        mlir.ir.Module.parse(text, mlir.context).operation.write_bytecode(out)
    except Exception as error:
        raise _refused(error, f"'{filename}' is no VHLO this jaxlib can read", filename) from None
    return to_text(out.getvalue(), filename)


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

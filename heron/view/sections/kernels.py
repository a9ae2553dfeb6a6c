"""The kernels: their launches, what the assembler says of them, and their texts where the trace has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.trace.record import Record


def section(trace: Record) -> dict[str, Any]:
    """``kernels`` in the order of the trace; ``steps`` is empty where the trace has no texts."""
    texts = {t["name"]: t for t in trace.texts}
    rows = [
        {
            "name": k.name,
            "emitter": k.emitter,
            "sources": k.source,
            "launch": k.launch,
            "code_size": k.code_size,
            "resources": k.resources,
            "instruction": texts.get(k.name, {}).get("instruction", k.source[0] if k.source else ""),
            "names": texts.get(k.name, {}).get("names", []),
            "steps": texts.get(k.name, {}).get("steps", []),
        }
        for k in trace.kernels
    ]
    return {"kernels": rows, "became": dict(trace.became)}

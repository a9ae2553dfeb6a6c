"""Fingerprint: a computation's canonical text, the same for computations that compute the same in the same way.

Names, metadata, sharding and the order of insertion do not show in it; opcodes, shapes with layouts, attributes,
literals and called computations do. Kernels are reused by it, so it is made for speed, not for reading.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, cast

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.order import print_order, reachable


def fingerprint(c: Computation, *, layouts: bool = True) -> str:
    """The canonical text: parameters by number, then the other instructions, operands by position.

    Without `layouts`, none shows in it.
    """
    known: dict[Computation, str] = {}
    text = ""
    for callee in reachable(c):  # ends with c itself
        text = _text(callee, known, layouts)
        known[callee] = _hash(text.encode())
    return text


def digest(c: Computation, *, layouts: bool = True) -> str:
    """A short name for the fingerprint: 128 bits in hex."""
    return _hash(fingerprint(c, layouts=layouts).encode())


def digests(computations: Iterable[Computation]) -> dict[Computation, str]:
    """The digests of computations that stand callees first, with all those they call."""
    known: dict[Computation, str] = {}
    for c in computations:
        known[c] = _hash(_text(c, known).encode())
    return known


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _text(c: Computation, known: dict[Computation, str], layouts: bool = True) -> str:
    """`known`: the digests of all computations that `c` calls."""
    parameters = c.parameters
    positions: dict[Instruction, int] = {p: n for n, p in enumerate(parameters)}
    lines = [(p.shape if layouts else p.shape.bare).text for p in parameters]
    for i in print_order(c):
        if i in positions:
            continue
        operands = ",".join([str(positions[o]) for o in i.operands])
        line = f"{i.opcode}({operands}){(i.shape if layouts else i.shape.bare).text}"
        if i.attrs:
            line += _attributes(i, known)
        if i.extras and "backend_config" in i.extras:
            line += f";config={i.extras['backend_config']}"
        if i.control_predecessors:
            line += f";after={[positions[p] for p in i.control_predecessors]}"
        positions[i] = len(positions)
        lines.append(line)
    lines.append(f"root {positions[c.root]}")
    return f"{len(parameters)}\n" + "\n".join(lines)


def _attributes(i: Instruction, known: dict[Computation, str]) -> str:
    parts: list[str] = []
    for name, spec in i.op.attributes.items():
        value = i.attrs.get(name)
        if value is not None and value != spec.default:
            parts.append(f";{name}={_value(value, known)}")
    return "".join(parts)


def _value(value: Any, known: dict[Computation, str]) -> str:
    if isinstance(value, Computation):
        return known[value]
    if isinstance(value, Literal):
        return value.key.hex()
    if isinstance(value, tuple) and value and isinstance(value[0], Computation):
        return ",".join(known[c] for c in cast("tuple[Computation, ...]", value))
    return str(cast("object", value))

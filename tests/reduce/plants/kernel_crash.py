"""A planted fault: the process ends while the kernel of a rsqrt of a sum is written."""

import ctypes

import heron
from heron.codegen.elemental import transcendental
from heron.codegen.elemental.registry import RULES

_emit = transcendental._unary


def _crash(e, i, index):
    if i.operands[0].opcode == "add":
        ctypes.string_at(0)
    return _emit(e, i, index)


RULES["rsqrt"] = _crash


@heron.rewrite("rsqrt")
def nothing(i, b):
    return None

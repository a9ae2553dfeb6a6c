"""Elemental emission: the scalar an instruction has at an index, as xDSL ops. One file a family of ops."""

from heron.codegen.elemental.emitter import FunctionEmitter, KernelEmitter
from heron.codegen.elemental.registry import Support, supported, uncovered_ops
from heron.codegen.elemental.values import Pair, Value

__all__ = ["FunctionEmitter", "KernelEmitter", "Pair", "Support", "Value", "supported", "uncovered_ops"]

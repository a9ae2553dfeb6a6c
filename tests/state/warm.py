"""Modules that sequences need, imported once by the process that they are forked from. Compiles nothing, starts no thread."""

import llvmlite.binding  # noqa: F401

import heron.evaluator  # noqa: F401
from heron import targets
from heron.backends.compiler import machine_for
from heron.codegen.elemental.registry import load
from heron.options import Options
from tests.state import sequence  # noqa: F401
from tests.state.programs import names

load()
names()
for target in ("cpu", "sim:sm_90"):
    machine_for(targets.get(target), Options()).pipelines()

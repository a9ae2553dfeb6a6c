"""Modules that the pool's children need, imported once by the process that they are forked from. Starts no thread."""

from heron import targets
from heron.backends.compiler import machine_for
from heron.codegen.elemental.registry import load
from heron.options import Options

load()
machine_for(targets.get("cpu"), Options()).pipelines()

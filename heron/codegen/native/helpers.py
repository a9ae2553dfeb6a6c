"""Provides the native helpers and the assembler that runtime asks for by name (`heron.runtime.compiled`)."""

from __future__ import annotations

from heron.codegen.llvm.assemble import assemble
from heron.codegen.native import array_pool_code, call_code, collectives_code, pool_code
from heron.runtime import array_pool, compiled
from heron.runtime.collectives import state
from heron.runtime.cpu import call, pool

compiled.provide(array_pool.HELPER, array_pool_code.make)
compiled.provide(call.HELPER, call_code.make)
compiled.provide(pool.HELPER, pool_code.make)
compiled.provide(state.HELPER, collectives_code.make)
compiled.provide_assembler(lambda ptx, sm: assemble(ptx, sm).code)

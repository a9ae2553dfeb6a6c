"""Provides the native helpers and the assembler that runtime asks for by name (`heron.runtime.compiled`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from heron.later import Later
from heron.runtime import array_pool, compiled
from heron.runtime.collectives import state
from heron.runtime.cpu import call, pool

_MAKERS: Later[compiled.Maker] = Later(
    {
        array_pool.HELPER: "heron.codegen.native.array_pool_code:make",
        call.HELPER: "heron.codegen.native.call_code:make",
        pool.HELPER: "heron.codegen.native.pool_code:make",
        state.HELPER: "heron.codegen.native.collectives_code:make",
    }
)


def _made(name: str) -> Mapping[str, int] | None:
    return _MAKERS[name]()


def _assembled(ptx: str, sm: str) -> bytes:
    from heron.codegen.llvm.assemble import assemble  # with what reads machine code of GPUs, for those alone

    return assemble(ptx, sm).code


for _name in _MAKERS:
    compiled.provide(_name, partial(_made, _name))
compiled.provide_assembler(_assembled)

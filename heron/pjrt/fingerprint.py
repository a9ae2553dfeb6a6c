"""Fingerprints: short names of programs and executables, equal in every process. JAX asks for one with each compile."""

from __future__ import annotations

import hashlib
from dataclasses import fields

from heron.hlo.ir.module import Module
from heron.hlo.text.printer import identity
from heron.pjrt.compile_options import CompileOptions


def of_program(given: str | bytes | Module, source: Module) -> str:
    """The name of the module ``source``, read from what was ``given``: text and bytes are hashed as they are, in a
    hundredth of the time that it takes to print the module."""
    text = identity(source) if isinstance(given, Module) else given
    return _hash(text.encode() if isinstance(text, str) else text)


def of_executable(program: str, target: str, options: CompileOptions) -> str:
    """The name of an executable: a program by its name, compiled for a target with options."""
    import heron

    given = [(f.name, getattr(options, f.name)) for f in fields(options)]
    return _hash(f"heron {heron.__version__} {target} {given} {program}".encode())


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()

"""Loading a program in any form. The content decides which form it is, not the file's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from heron import files
from heron.frontends.arguments import Given, given, split
from heron.frontends.stablehlo.bytecode import MAGIC
from heron.hlo.ir.module import Module

#: the importer's code for sizes that are open
OPEN_SIZES = "SHLO011"
#: the beginning of an MLIR text of a module or function, after comments
_MLIR = re.compile(
    r'(?:\s|//[^\n]*\n)*+(?:[#!][\w.]+\s*=|(?:builtin\.)?module\s*(?:[@{]|attributes\b)|func\.func\b|sdy\.mesh\b|"[\w.]+"\s*\()'
)
_MAX_NAME = 4096


def load(
    source: str | bytes | Path,
    *,
    filename: str = "<text>",
    verify: bool = False,
    platform: str | None = None,
    arguments: Iterable[Any] = (),
) -> Module:
    """The module in a file, a text or bytes.

    Args:
        source: a path, HLO or StableHLO text, or the bytes of either, of MLIR bytecode, of a portable artifact or of a
            protocol buffer (HloModuleProto, HloProto, HloSnapshot). A `str` of one line that reads like no program
            is a path. ``model.py:function`` is a JAX function in a Python file (see `python_file`), which is run.
            Shapes in parentheses behind a path, ``model.mlir(f32[2,3])``, are `arguments`.
        filename: the name of a text in errors.
        verify: also run the verifier.
        platform: the platform that a JAX function is lowered for, as for `from_jax`.
        arguments: shapes of the arguments, for StableHLO that leaves sizes open: shapes or their text, arrays, or what
            has `dtype` and `shape`. Sizes may also depend on the value of an array of integers.

    Raises:
        HeronError: CLI010, CLI011 (file), JAX0xx (function), and what the form's own reader raises.
    """
    known = given(arguments)
    if isinstance(source, bytes):
        return from_bytes(source, filename, verify=verify, arguments=known)
    if isinstance(source, str) and not _is_path(source):
        return _from_text(source, filename, verify, known)
    if isinstance(source, str) and ".py" in source:
        module = _from_python(source, platform, verify)
        if module is not None:
            return module
    source, behind = split(str(source))
    return from_bytes(files.read_bytes(source), source, verify=verify, arguments=known or behind)


def from_bytes(
    data: bytes, filename: str = "<bytes>", *, verify: bool = False, arguments: Sequence[Given] = ()
) -> Module:
    """The module in the content of a file. Raises CLI011 if it is in no known form."""
    from heron.hlo import proto

    if data.startswith(MAGIC):
        from heron.frontends.stablehlo.bytecode import to_text
        from heron.frontends.stablehlo.importer import parse

        return parse(to_text(data, filename), filename, verify=verify, arguments=arguments)
    if proto.looks_like(data):
        return proto.load(data, filename, verify=verify)
    text = files.decode(data, filename)
    if not text.strip():
        raise files.empty(filename)
    return _from_text(text, filename, verify, arguments)


def is_stablehlo(text: str) -> bool:
    """Whether a text is MLIR, by its beginning."""
    return _MLIR.match(text) is not None


def stablehlo_text(source: str | bytes | Path) -> tuple[str, str] | None:
    """The text of a StableHLO program and its name in errors; None for a program in any other form."""
    if isinstance(source, str) and not _is_path(source):
        text, filename = source, "<text>"
    elif isinstance(source, bytes):
        text, filename = source, "<bytes>"
    else:
        filename, _ = split(str(source))
        if ".py" in filename:
            return None
        text = files.read_bytes(filename)
    if isinstance(text, bytes):
        if text.startswith(MAGIC):
            from heron.frontends.stablehlo.bytecode import to_text

            return to_text(text, filename), filename
        try:
            text = text.decode()
        except UnicodeDecodeError:
            return None
    if not is_stablehlo(text):
        return None
    return _newest(text, filename), filename


def _newest(text: str, filename: str) -> str:
    if "vhlo." not in text:
        return text
    from heron.frontends.stablehlo.bytecode import upgraded

    return upgraded(text, filename)


def _from_text(text: str, filename: str, verify: bool, arguments: Sequence[Given]) -> Module:
    if is_stablehlo(text):
        from heron.frontends.stablehlo.importer import parse

        return parse(_newest(text, filename), filename, verify=verify, arguments=arguments)
    from heron.hlo.text import parse as parse_hlo

    return parse_hlo(text, filename, verify=verify)


def _from_python(source: str, platform: str | None, verify: bool) -> Module | None:
    from heron.frontends.python_file import from_python, named

    wanted = named(source)
    if wanted is None:
        return None
    module = from_python(wanted, platform)
    if verify:
        from heron.hlo.verifier import verify as check

        check(module)
    return module


def _is_path(source: str) -> bool:
    return "\n" not in source and len(source) < _MAX_NAME and not is_stablehlo(source) and "{" not in source

"""Loading a program in whatever form it comes; what it is shows in its content, not in a file's name."""

from __future__ import annotations

import re
from pathlib import Path

from heron import files
from heron.frontends.stablehlo.bytecode import MAGIC
from heron.hlo.module import Module

#: how MLIR text of a module or function begins, after comments
_MLIR = re.compile(
    r'(?:\s|//[^\n]*\n)*+(?:[#!][\w.]+\s*=|(?:builtin\.)?module\s*(?:[@{]|attributes\b)|func\.func\b|sdy\.mesh\b|"[\w.]+"\s*\()'
)
_MAX_NAME = 4096


def load(
    source: str | bytes | Path, *, filename: str = "<text>", verify: bool = False, platform: str | None = None
) -> Module:
    """The module in a file, a text or bytes.

    Args:
        source: a path, HLO or StableHLO text, or the bytes of either, of MLIR bytecode, of a portable artifact or of a
            protocol buffer (HloModuleProto, HloProto, HloSnapshot). A `str` of one line that reads like no program
            is a path. ``model.py:function`` is a JAX function in a Python file (see `python_file`), which is run.
        filename: what errors call a text.
        verify: also run the verifier.
        platform: what a JAX function is lowered for, as for `from_jax`.

    Raises:
        HeronError: CLI010, CLI011 (file), JAX0xx (function), and what the form's own reader raises.
    """
    if isinstance(source, bytes):
        return from_bytes(source, filename, verify=verify)
    if isinstance(source, str) and not _is_path(source):
        return _from_text(source, filename, verify)
    if isinstance(source, str) and ".py" in source:
        module = _from_python(source, platform, verify)
        if module is not None:
            return module
    return from_bytes(files.read_bytes(source), str(source), verify=verify)


def from_bytes(data: bytes, filename: str = "<bytes>", *, verify: bool = False) -> Module:
    """The module in the content of a file. Raises CLI011 when it is none of the known forms."""
    from heron.hlo import proto

    if data.startswith(MAGIC):
        from heron.frontends.stablehlo.bytecode import to_text
        from heron.frontends.stablehlo.importer import parse

        return parse(to_text(data, filename), filename, verify=verify)
    if proto.looks_like(data):
        return proto.load(data, filename, verify=verify)
    text = files.decode(data, filename)
    if not text.strip():
        raise files.empty(filename)
    return _from_text(text, filename, verify)


def is_stablehlo(text: str) -> bool:
    """Whether a text is MLIR's, by how it begins."""
    return _MLIR.match(text) is not None


def _from_text(text: str, filename: str, verify: bool) -> Module:
    if is_stablehlo(text):
        from heron.frontends.stablehlo.importer import parse

        if "vhlo." in text:
            from heron.frontends.stablehlo.bytecode import upgraded

            text = upgraded(text, filename)
        return parse(text, filename, verify=verify)
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

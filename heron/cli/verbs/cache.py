"""``heron cache``: machine code and PTX that were kept from earlier compiles."""

from __future__ import annotations

import dataclasses
import time

import click

from heron import targets
from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    load_module,
    make_options,
    print_json,
    print_table,
    settings_option,
    target_option,
)
from heron.trace import Trace
from heron.trace.summary import size, table


@click.group(
    short_help="List, explain or clear the code kept from earlier compiles.",
    epilog=examples(
        "heron compile model.hlo -O cache=true",
        "heron cache ls",
        "heron cache why model.hlo --target sm_90",
        "heron cache clear",
    ),
)
def command() -> None:
    """Manage the machine code and PTX that `-O cache=true` keeps in HERON_CACHE_DIR or the user's cache folder."""


@command.command("ls", short_help="List what is kept.")
@json_option
def ls(as_json: bool) -> None:
    """List the entries, the most recently used first."""
    from heron.codegen.llvm.code_cache import CodeCache

    cache = CodeCache()
    found = cache.entries()
    if as_json:
        entries = [{"module": e.label, "bytes": e.bytes, "used": e.used, **dataclasses.asdict(e.key)} for e in found]
        print_json({"folder": str(cache.folder), "entries": entries})
        return
    rows = table("module", "kind", "size>", "used", "machine", "options", "LLVM text")
    for e in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used))
        rows.add_row(e.label, e.key.kind, size(e.bytes), used, e.key.machine, e.key.options, e.key.ir[:12])
    if found:
        print_table(rows)
    click.echo(f"{len(found)} entries, {size(sum(e.bytes for e in found))}, in {cache.folder}")


@command.command("why", short_help="Say what of a program is kept, and why the rest is not.")
@file_argument
@target_option
@settings_option
@json_option
def why(file: str, target: str, settings: tuple[str, ...], as_json: bool) -> int:
    """Say for each module that FILE becomes whether its code is kept. Exit code 1: some is not."""
    from heron.backends.compiler import Compilation
    from heron.codegen.llvm.code_cache import CodeCache

    module, options = load_module(file, target), make_options(settings)
    compilation = Compilation(module, targets.get(target), options, Trace(module.name, target))
    cache = CodeCache()
    found = [(label, cache.why(key, label), cache.get(key) is not None) for label, key in compilation.code_keys()]
    if as_json:
        print_json([{"module": label, "kept": kept, "why": reason} for label, reason, kept in found])
    else:
        rows = table("module", "kept", "why")
        for label, reason, kept in found:
            rows.add_row(label, "yes" if kept else "no", reason)
        print_table(rows)
    return int(not all(kept for _, _, kept in found))


@command.command("clear", short_help="Remove what is kept.")
@json_option
def clear(as_json: bool) -> None:
    """Remove every entry."""
    from heron.codegen.llvm.code_cache import CodeCache

    count, freed = CodeCache().clear()
    if as_json:
        print_json({"removed": count, "bytes": freed})
        return
    click.echo(f"removed {count} entries, {size(freed)}")

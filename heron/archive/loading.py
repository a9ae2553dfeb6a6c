"""A program from a file, ready to call where its machine is, with a reason where it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron.archive import container, layout, modules
from heron.archive.parts import Parts
from heron.archive.plain import decode
from heron.codegen.native import helpers  # noqa: F401  provides what runtime asks for
from heron.collector import collector_paused
from heron.errors import HeronError
from heron.runtime.collectives.spread import Spread
from heron.runtime.executable import Executable, ProgramInfo
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.codegen.llvm.code_cache import CodeCache

_MAX_NAME = 4096


def load(source: str | bytes | Path, **how: Any) -> Any:
    """The content of a file: the `Executable` of a saved program, else the `Module` from `heron.frontends.load`, which
    also takes texts, bytes and further arguments.

    Raises what `load_program` and `heron.frontends.load` raise.
    """
    if isinstance(source, (str, Path)) and is_program(source):
        return load_program(source)
    with collector_paused():
        from heron import frontends

        return frontends.load(source, **how)


def is_program(path: str | Path) -> bool:
    """Whether a path names a file that begins as saved programs do."""
    if isinstance(path, str) and ("\n" in path or len(path) > _MAX_NAME):
        return False
    try:
        with open(path, "rb") as stream:
            return container.is_archive(stream.read(4))
    except (OSError, ValueError):
        return False


def load_program(path: str | Path) -> Executable:
    """The executable in a file that `save` wrote.

    A program for a GPU loads anywhere, and looks for its device when it is called. The file holds machine code, which
    runs as it is: load only what you trust.

    Raises:
        HeronError: CLI010 (no file), RUN050 (no saved program, or damaged), RUN051 (another format, or code for another
            CPU).
    """
    return made(*container.read(path), path)


def made(
    manifest: dict[str, Any], members: dict[str, bytes], path: str | Path, cache: CodeCache | None = None
) -> Executable:
    """The executable of a saved program's members; ``path`` is for errors, ``cache`` may have the code that programs
    share. Raises what `load_program` raises.
    """
    try:
        return _made(manifest, members, str(path), cache)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise HeronError(
            "RUN050",
            f"'{path}' is not a saved program, or is damaged",
            why=f"{type(error).__name__}: {error}",
            hint="save the program again with this version of heron",
        ) from error


def _made(manifest: dict[str, Any], members: dict[str, bytes], path: str, cache: CodeCache | None) -> Executable:
    constants = {
        int(Path(name).stem): container.bytes_array(data)
        for name, data in members.items()
        if name.startswith("constants/")
    }
    trace = Trace(manifest["name"], manifest["target"])
    trace.options = manifest["options"]
    info = ProgramInfo(
        manifest["name"],
        manifest["target"],
        decode(manifest["signature"]),
        list(decode(manifest["kernels"])),
        layout.from_plain(manifest["buffers"], constants),
        trace,
        SavedStages(path, members),
        decode(manifest["spread"]) if "spread" in manifest else Spread(),
    )
    parts = Parts(manifest["machine"], decode(json.loads(members["plan.json"])), members)
    # each kind of program loads the modules of its own kind only
    match parts.machine["kind"]:
        case "cpu":
            from heron.archive import cpu

            return cpu.load(parts, info, cache)
        case "cuda":
            from heron.archive import cuda

            return cuda.load(parts, info)
        case "sim":
            from heron.archive import sim

            return sim.load(parts, info)
        case kind:
            raise ValueError(f"unknown kind of machine {kind!r}")


class SavedStages:
    """The texts a file has of a program's stages."""

    def __init__(self, path: str, members: dict[str, bytes]) -> None:
        self.path = path
        self._texts = {Path(n).stem: data for n, data in members.items() if n.startswith("stages/")}
        self._members = members
        code = [data for n, data in members.items() if n.endswith(".ptx")]
        if code:
            self._texts["ptx"] = b"\n".join(code)

    def text(self, name: str) -> str:
        """A stage. Raises RUN053 for one that the file has not."""
        if name == "scheduled" and modules.SCHEDULED in self._members:
            return modules.in_full(modules.SCHEDULED, self._members)
        found = self._texts.get(name)
        if found is None:
            has = ", ".join(self._texts)
            raise HeronError("RUN053", f"'{self.path}' has no stage '{name}'", why=f"it has {has}")
        return found.decode()

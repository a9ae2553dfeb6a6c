"""Second step: the kernel's body as one simulated thread.

Ids become parameters or constants. A barrier or warp intrinsic ends its basic block with `llvm.coro.suspend`, after
noting for the scheduler what the thread waits for. Every branch back counts a step, so that no loop is for ever. With
checks on, every load, store and atomic goes through a hook.
"""

from __future__ import annotations

import re
from dataclasses import field

from heron.codegen.llvm.text import Function
from heron.codegen.llvm.values import Value, View
from heron.codegen.sim.accesses import alignment, parts, root_of, roots, type_size
from heron.codegen.sim.flatten import Flat, split_arguments
from heron.codegen.sim.intrinsics import collective, leave, take
from heron.errors import HeronError
from heron.records import dataclass
from heron.runtime.sim.code import Access
from heron.runtime.sim.state import ACTIVE_WAIT, BLOCK_WAIT, PART_WAIT, WARP_WAIT, State

IDS = tuple(f"{group}.{axis}" for group in ("tid", "ctaid") for axis in "xyz")
BARRIER = re.compile(
    r"call void @llvm\.nvvm\.(?:barrier0|barrier\.cta\.sync(?:\.aligned)?\.all|barrier\.sync|bar\.sync)\("
)
PART_BARRIER = re.compile(r"call void @llvm\.nvvm\.barrier\.cta\.(sync|arrive)(?:\.aligned)?\.count\((.*)$")
WARP_BARRIER = re.compile(r"call void @llvm\.nvvm\.bar\.warp\.sync\(i32 (?:noundef )?([^)\s]+)\)")
REGISTER = re.compile(r"(%[\w.]+) = [^@]*@llvm\.nvvm\.read\.ptx\.sreg\.([\w.]+)\(\)")
ACTIVE = re.compile(r"(%[\w.]+) = [^@]*@llvm\.nvvm\.activemask\(\)")
FENCE = re.compile(r"call void @llvm\.nvvm\.membar\.\w+\(")
_LABEL = re.compile(r"\blabel (%[\w.$-]+)")


@dataclass(slots=True)
class Thread:
    """The rewritten body. ``sites``: by number the source text of a synchronisation, or a checked access."""

    lines: list[str] = field(default_factory=list)
    sites: list[str | Access] = field(default_factory=list)
    tails: list[str] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    suspends: bool = False
    label: str = ""
    last_part: dict[str, str] = field(default_factory=dict)

    def site(self, source: str | Access) -> int:
        """A number for it."""
        self.sites.append(source)
        return len(self.sites) - 1


def rewrite(flat: Flat, grid: tuple[int, int, int], block: tuple[int, int, int], check: bool) -> Thread:
    """The kernel's lines as simulated-thread lines. Raises RUN071 for a GPU intrinsic that is not simulated."""
    thread = Thread()
    sizes = {f"ntid.{a}": n for a, n in zip("xyz", block, strict=True)}
    sizes |= {f"nctaid.{a}": n for a, n in zip("xyz", grid, strict=True)} | {"warpsize": 32}
    known = roots(flat) if check else {}
    for text in _joined(flat.body):
        if label := re.match(r"^([\w.$-]+):", text):
            thread.label = label.group(1)
            thread.labels.add(f"%{thread.label}")
            thread.lines.append(f"{thread.label}:")
            continue
        _line(thread, text, sizes, known, check)
    thread.lines += thread.tails
    _fix_phis(thread)
    return thread


def _joined(body: tuple[str, ...]) -> list[str]:
    """The lines without comments and metadata, a switch on one line."""
    lines: list[str] = []
    for line in body:
        text = re.sub(r", !(?!\d)[\w.]+ !\d+", "", line.split(" ; ")[0].split("; preds")[0].rstrip())
        if not text.strip():
            continue
        if lines and lines[-1].lstrip().startswith("switch") and not lines[-1].endswith("]"):
            lines[-1] += " " + text.strip()
        else:
            lines.append(text)
    return lines


def _line(thread: Thread, text: str, sizes: dict[str, int], known: dict[str, str], check: bool) -> None:
    if match := REGISTER.search(text):
        thread.lines.append(f"  {match.group(1)} = add i32 {_register(match.group(2), sizes)}, 0")
    elif match := ACTIVE.search(text):
        _suspend(thread, text, ACTIVE_WAIT, "-1")
        piece, launch = _piece(f"{len(thread.sites)}.active")
        piece.line(f"{match.group(1)} = add i32 {launch['members', Value('%sim.lin', 'i32', piece)]}, 0")
        thread.lines += piece.lines
    elif BARRIER.search(text):
        _suspend(thread, text, BLOCK_WAIT, "-1")
    elif match := PART_BARRIER.search(text):
        _part_barrier(thread, text, match)
    elif match := WARP_BARRIER.search(text):
        _meet(thread, text, match.group(1))
    elif FENCE.search(text):
        return  # one host thread runs the grid: memory is coherent
    elif "@llvm.nvvm." in text:
        _collective(thread, text)
    elif text.strip() == "ret void":
        thread.lines.append("  br label %sim.final")
    elif "label %" in text and any(target in thread.labels for target in _LABEL.findall(text)):
        _step(thread, text)
    else:
        thread.lines.append(_checked(thread, text, known) if check else _plain(text))


def _register(name: str, sizes: dict[str, int]) -> str:
    if name in sizes:
        return str(sizes[name])
    if name in IDS:
        return f"%sim.{name}"
    if name == "laneid":
        return "%sim.lane"
    raise HeronError("RUN071", f"the simulated GPU has no special register '{name}'")


def _suspend(thread: Thread, text: str, event: int, mask: str, count: str = "0", number: int | None = None) -> None:
    """Note what is waited for, suspend, go on in a new block."""
    number = thread.site(text.strip()) if number is None else number
    thread.suspends = True
    after = f"sim.resume{number}"
    piece, launch = _piece(str(number))
    launch["event"], launch["site"], launch["mask"], launch["count"] = event, number, mask, count
    thread.lines += [
        *piece.lines,
        f"  %sim.s{number} = call i8 @llvm.coro.suspend(token none, i1 false)",
        f"  switch i8 %sim.s{number}, label %sim.suspend [ i8 0, label %{after}  i8 1, label %sim.suspend ]",
    ]
    _begin(thread, after)


def _piece(name: str) -> tuple[Function, View]:
    """Lines to put into the thread, whose names no others have, and the launch they are of."""
    piece = Function(prefix=f"sim.{name}.")
    return piece, piece.view("%sim.state", State)


def _begin(thread: Thread, label: str) -> None:
    """A block of ours that goes on with the one being read."""
    thread.lines.append(f"{label}:")
    thread.last_part[thread.label] = label


def _meet(thread: Thread, text: str, mask: str) -> int:
    """Wait for the lanes of the mask."""
    number = thread.site(text.strip())
    thread.lines.append(f"  call void @sim.meet(ptr %sim.state, i32 %sim.lin, i32 {mask}, i32 {number})")
    _suspend(thread, text, WARP_WAIT, mask, number=number)
    return number


def _part_barrier(thread: Thread, text: str, match: re.Match[str]) -> None:
    """A barrier of some of the block's threads: wait until so many are there, or only be counted."""
    barrier, count = (part.split()[-1] for part in split_arguments(match.group(2)))
    if match.group(1) == "sync":
        _suspend(thread, text, PART_WAIT, barrier, count)
    else:
        thread.lines.append(f"  call void @sim.arrive(ptr %sim.state, i32 {barrier})")


def _collective(thread: Thread, text: str) -> None:
    """Leave the value, meet, compute the result."""
    found = collective(text)
    if found is None:
        name = re.search(r"@llvm\.nvvm\.([\w.]+)", text)
        assert name is not None
        raise HeronError("RUN071", f"the simulated GPU does not know 'llvm.nvvm.{name.group(1)}'", where=text.strip())
    n = len(thread.sites)
    thread.lines += leave(found, n)
    piece, launch = _piece(f"{n}.value")
    launch["values", Value("%sim.lin", "i32", piece)] = f"%sim.w{n}"
    thread.lines += piece.lines
    _meet(thread, text, found.mask)
    thread.lines += take(found, n)


def _step(thread: Thread, text: str) -> None:
    """A branch back: one step less."""
    n = thread.site(text.strip())
    thread.lines += [
        f"  %sim.l{n} = load i64, ptr %sim.left",
        f"  %sim.m{n} = sub i64 %sim.l{n}, 1",
        f"  store i64 %sim.m{n}, ptr %sim.left",
        f"  %sim.e{n} = icmp slt i64 %sim.m{n}, 0",
        f"  br i1 %sim.e{n}, label %sim.tired{n}, label %sim.on{n}",
    ]
    _begin(thread, f"sim.on{n}")
    thread.lines.append(text)
    exhausted = f"  call void @sim.exhausted(ptr %sim.state, i32 %sim.lin, i32 {n})"
    thread.tails += [f"sim.tired{n}:", exhausted, "  br label %sim.final"]


def _fix_phis(thread: Thread) -> None:
    """A block cut by suspensions ends in its last part: phis must name that one."""
    if not thread.last_part:
        return
    for position, line in enumerate(thread.lines):
        if " = phi " in line:
            thread.lines[position] = re.sub(
                r", %([\w.$-]+) \]", lambda m: f", %{thread.last_part.get(m.group(1), m.group(1))} ]", line
            )


def _plain(text: str) -> str:
    """The access on the host, which is promised no alignment."""
    found = parts(text)
    return text if found is None else found.on(found.pointer)


def _checked(thread: Thread, text: str, known: dict[str, str]) -> str:
    """The access with its pointer replaced by what the hook returns; the hook call goes before it."""
    found = parts(text)
    if found is None:
        return text
    root = root_of(found.pointer, known)
    if root is None:
        return found.on(found.pointer)
    number = thread.site(Access(text.strip(), type_size(found.type_), found.kind, alignment(text), root))
    safe = f"%sim.safe{number}"
    thread.lines.append(f"  {safe} = call ptr @sim.access(ptr %sim.state, ptr {found.pointer}, i32 {number})")
    return found.on(safe)

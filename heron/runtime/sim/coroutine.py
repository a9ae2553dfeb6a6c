"""Second step: the kernel's body as one simulated thread.

Ids become parameters or constants. A barrier or shuffle ends its basic block with `llvm.coro.suspend`, after noting for
the scheduler what the thread waits for. With checks on, every load, store and atomic goes through a hook.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from heron.errors import HeronError
from heron.runtime.sim.flatten import Flat, split_arguments

IDS = tuple(f"{group}.{axis}" for group in ("tid", "ctaid") for axis in "xyz")
MODES = {"down": 0, "up": 1, "bfly": 2, "idx": 3}
BARRIERS = re.compile(
    r"call void @llvm\.nvvm\.(barrier0|barrier\.cta\.sync(?:\.aligned)?\.all|barrier\.sync|bar\.sync)\("
)
WARP_BARRIER = re.compile(r"call void @llvm\.nvvm\.bar\.warp\.sync\(i32 (?:noundef )?([^)\s]+)\)")
SHUFFLE = re.compile(r"(%[\w.]+) = (?:tail )?call (i32|float) @llvm\.nvvm\.shfl\.sync\.(\w+)\.(?:i32|f32)\((.*)$")
REGISTER = re.compile(r"(%[\w.]+) = [^@]*@llvm\.nvvm\.read\.ptx\.sreg\.([\w.]+)\(\)")
FENCE = re.compile(r"call void @llvm\.nvvm\.membar\.\w+\(")
LOAD = re.compile(r"^(\s*%[\w.]+ = load (?:atomic )?(?:volatile )?)([^,]+), ptr ([^\s,]+)(.*)$")
STORE = re.compile(r"^(\s*store (?:atomic )?(?:volatile )?)(.+), ptr ([^\s,]+)(.*)$")
ATOMIC = re.compile(
    r"^(\s*%[\w.]+ = (?:atomicrmw|cmpxchg) (?:weak )?(?:volatile )?(?:\w+ )?)ptr ([^\s,]+), (\S+) (.*)$"
)
DERIVED = re.compile(r"^\s*(%[\w.]+) = (getelementptr|bitcast|freeze|select|phi)\b(.*)$")
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


@dataclass(slots=True)
class Thread:
    """The rewritten body. ``sites``: source text of each synchronisation and checked access, by number."""

    lines: list[str] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)
    suspends: bool = False
    granule: int = 8
    label: str = ""
    last_part: dict[str, str] = field(default_factory=dict)


def rewrite(flat: Flat, grid: tuple[int, int, int], block: tuple[int, int, int], check: bool) -> Thread:
    """The kernel's lines as simulated-thread lines. Raises RUN071 for a GPU intrinsic that is not simulated."""
    thread = Thread()
    sizes = {f"ntid.{a}": n for a, n in zip("xyz", block, strict=True)}
    sizes |= {f"nctaid.{a}": n for a, n in zip("xyz", grid, strict=True)} | {"warpsize": 32}
    roots = _roots(flat) if check else {}
    for line in flat.body:
        text = re.sub(r", !(?!\d)[\w.]+ !\d+", "", line.split(" ; ")[0].split("; preds")[0].rstrip())
        if not text.strip():
            continue
        if label := re.match(r"^([\w.$-]+):", text):
            thread.label = label.group(1)
            thread.lines.append(f"{thread.label}:")
            continue
        _line(thread, text, sizes, roots, check)
    _fix_phis(thread)
    return thread


def _line(thread: Thread, text: str, sizes: dict[str, int], roots: dict[str, str], check: bool) -> None:
    if match := REGISTER.search(text):
        thread.lines.append(f"  {match.group(1)} = add i32 {_register(match.group(2), sizes)}, 0")
    elif BARRIERS.search(text):
        _suspend(thread, text, 1, "-1")
    elif match := WARP_BARRIER.search(text):
        _suspend(thread, text, 2, match.group(1))
    elif match := SHUFFLE.search(text):
        _shuffle(thread, text, match)
    elif FENCE.search(text):
        return  # one host thread runs the grid: memory is coherent
    elif match := re.search(r"@llvm\.nvvm\.([\w.]+)\(", text):
        raise HeronError("RUN071", f"the simulated GPU does not know 'llvm.nvvm.{match.group(1)}'", where=text.strip())
    elif text.strip() == "ret void":
        thread.lines.append("  br label %sim.final")
    else:
        thread.lines.append(_checked(thread, text, roots) if check else text)


def _register(name: str, sizes: dict[str, int]) -> str:
    if name in sizes:
        return str(sizes[name])
    if name in IDS:
        return f"%sim.{name}"
    if name == "laneid":
        return "%sim.lane"
    raise HeronError("RUN071", f"the simulated GPU has no special register '{name}'")


def _site(thread: Thread, text: str) -> int:
    thread.sites.append(text.strip())
    return len(thread.sites) - 1


def _suspend(thread: Thread, text: str, event: int, mask: str) -> None:
    """Note what is waited for, suspend, go on in a new block."""
    number = _site(thread, text)
    thread.suspends = True
    after = f"sim.resume{number}"
    thread.lines += [
        f"  store i32 {event}, ptr @sim.event",
        f"  store i32 {number}, ptr @sim.site",
        f"  store i32 {mask}, ptr @sim.mask",
        f"  %sim.s{number} = call i8 @llvm.coro.suspend(token none, i1 false)",
        f"  switch i8 %sim.s{number}, label %sim.suspend [ i8 0, label %{after}  i8 1, label %sim.suspend ]",
        f"{after}:",
    ]
    thread.last_part[thread.label] = after


def _shuffle(thread: Thread, text: str, match: re.Match[str]) -> None:
    """Leave the value, suspend until the warp's lanes have left theirs, read the source lane's."""
    result, type_, mode, rest = match.groups()
    if mode not in MODES:
        raise HeronError("RUN071", f"the simulated GPU does not know shuffle '{mode}'", where=text.strip())
    mask, value, distance, clamp = (part.split()[-1] for part in split_arguments(rest))
    n = len(thread.sites)
    bits = value
    if type_ == "float":
        thread.lines.append(f"  %sim.b{n} = bitcast float {value} to i32")
        bits = f"%sim.b{n}"
    thread.lines += [
        f"  %sim.w{n} = zext i32 {bits} to i64",
        f"  %sim.p{n} = getelementptr i64, ptr @sim.values, i32 %sim.lin",
        f"  store i64 %sim.w{n}, ptr %sim.p{n}",
    ]
    _suspend(thread, text, 2, mask)
    call = f"call i64 @sim.shuffled(i32 {MODES[mode]}, i32 %sim.lin, i32 {distance}, i32 {clamp}, i64 %sim.w{n})"
    thread.lines.append(f"  %sim.x{n} = {call}")
    if type_ == "float":
        thread.lines += [f"  %sim.y{n} = trunc i64 %sim.x{n} to i32", f"  {result} = bitcast i32 %sim.y{n} to float"]
    else:
        thread.lines.append(f"  {result} = trunc i64 %sim.x{n} to i32")


def _fix_phis(thread: Thread) -> None:
    """A block cut by suspensions ends in its last part: phis must name that one."""
    if not thread.last_part:
        return
    for position, line in enumerate(thread.lines):
        if " = phi " in line:
            thread.lines[position] = re.sub(
                r", %([\w.$-]+) \]", lambda m: f", %{thread.last_part.get(m.group(1), m.group(1))} ]", line
            )


# checks


def _roots(flat: Flat) -> dict[str, str]:
    """Which argument or global each pointer comes from: '%name' or '@name'; '' when it could be several."""
    roots = {name: name for type_, name in flat.arguments if type_ == "ptr"}
    roots |= {f"@{name}": f"@{name}" for name in (*flat.shared, *flat.constants)}
    changed = True
    while changed:  # phis may name later values
        changed = False
        for line in flat.body:
            match = DERIVED.match(line)
            if match is None or "ptr" not in match.group(3):
                continue
            name, kind, rest = match.groups()
            found = {roots[value] for value in _pointers(kind, rest) if value in roots}
            root = found.pop() if len(found) == 1 else "" if found else None
            if root is not None and roots.get(name) != root and roots.get(name) != "":
                roots[name], changed = (root if name not in roots else ""), True
    return roots


def _pointers(kind: str, rest: str) -> list[str]:
    if kind == "phi":
        return re.findall(r"\[ ([^\s,]+),", rest)
    return re.findall(r"ptr ([%@][\w.$]+)", rest)


def _checked(thread: Thread, text: str, roots: dict[str, str]) -> str:
    """The access with its pointer replaced by what the hook returns; the hook call goes before it."""
    if match := LOAD.match(text):
        before, type_, pointer, after = match.groups()
        safe = _hook(thread, text, pointer, _size(type_), 0, roots)
        return f"{before}{type_}, ptr {safe}{after}"
    if match := STORE.match(text):
        before, value, pointer, after = match.groups()
        type_ = value.rsplit(" ", 1)[0] if not value.startswith("<") else value[: value.index(">") + 1]
        safe = _hook(thread, text, pointer, _size(type_), 1, roots)
        return f"{before}{value}, ptr {safe}{after}"
    if match := ATOMIC.match(text):
        before, pointer, type_, after = match.groups()
        safe = _hook(thread, text, pointer, _size(type_), 2, roots)
        return f"{before}ptr {safe}, {type_} {after}"
    return text


def _size(type_: str) -> int:
    type_ = type_.strip()
    if match := re.match(r"<(\d+) x (\w+)>", type_):
        return int(match.group(1)) * _size(match.group(2))
    if type_.startswith("{"):
        return sum(_size(part) for part in type_[1:-1].split(","))
    if match := re.fullmatch(r"i(\d+)", type_):
        return (int(match.group(1)) + 7) // 8
    return SIZES.get(type_, 1)


def _hook(thread: Thread, text: str, pointer: str, size: int, mode: int, roots: dict[str, str]) -> str:
    base = re.search(r"@[\w.$]+", pointer)
    root = roots.get(pointer, roots.get(base.group(0), "") if base else "")
    known_local = pointer.startswith("%") and pointer not in roots
    if known_local or root.startswith("@heron."):
        return pointer  # the thread's own stack, the library's tables
    number = _site(thread, text)
    safe = f"%sim.safe{number}"
    if root.startswith("@"):
        thread.granule = min(thread.granule, size & -size)
        arguments = f"ptr {pointer}, i64 {size}, ptr {root}, i64 sim.length({root}), i64 sim.object({root})"
        arguments += f", i64 sim.first({root}), i32 {mode}, i64 {number}"
        thread.lines.append(f"  {safe} = call ptr @sim.check.shared({arguments})")
    elif root:
        arguments = f"ptr {pointer}, i64 {size}, i64 sim.argument({root}), i64 {number}"
        thread.lines.append(f"  {safe} = call ptr @sim.check.argument({arguments})")
    else:
        thread.lines.append(f"  {safe} = call ptr @sim.check.any(ptr {pointer}, i64 {size}, i64 {number})")
    return safe

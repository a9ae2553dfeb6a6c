"""PTX text as data: functions, their parameters, registers and instructions, and memory objects of the module."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: bytes of a type such as b32 or f64; a predicate is a bit, kept in a byte
_TYPE = re.compile(r"([bsuf])(\d+)$")


@dataclass(frozen=True)
class Variable:
    """A parameter, or memory of the module or a function: its state space, name, bytes and what it begins as."""

    space: str
    name: str
    size: int
    align: int
    pointer: bool = False
    data: bytes = b""


@dataclass(frozen=True)
class Instruction:
    """``opcode`` with its modifiers, operands as text; ``guard``: ``%p1``, ``!%p1`` or nothing."""

    opcode: str
    operands: tuple[str, ...] = ()
    guard: str = ""
    line: int = 0

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(self.operands)}".strip()


@dataclass(frozen=True)
class Label:
    """A place to branch to."""

    name: str


@dataclass
class Function:
    """``registers``: bits of each; ``locals_``: memory of a thread; ``tables``: labels that ``brx.idx`` may go to."""

    name: str
    entry: bool
    parameters: list[Variable]
    returns: list[Variable]
    registers: dict[str, int] = field(default_factory=dict)
    locals_: list[Variable] = field(default_factory=list)
    body: list[Instruction | Label | Variable] = field(default_factory=list)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    block: tuple[int, ...] = ()


@dataclass
class Module:
    """A PTX module."""

    version: str
    target: str
    functions: dict[str, Function] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)


def bits_of(type_: str) -> int:
    """Bits of a type."""
    if type_ == "pred":
        return 1
    match = _TYPE.match(type_)
    if match is None:
        raise ValueError(f"no PTX type: {type_}")
    return int(match.group(2))


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_HEAD = re.compile(r"(?:\.visible |\.weak |\.extern )*\.(entry|func)\b\s*(\((?P<returns>[^)]*)\))?\s*(?P<name>[\w$]+)")
_VARIABLE = re.compile(
    r"\.(?P<space>\w+)\s+(?:\.align (?P<align>\d+)\s+)?\.(?P<type>\w+)\s+(?P<pointer>\.ptr\s+)?(?:\.(?:global|shared|const)\s+)?"
    r"(?:\.align (?P<of>\d+)\s+)?(?P<name>[\w$]+)(?:\[(?P<count>\d*)\])?(?:\s*=\s*(?P<data>.*))?$",
    re.S,
)


def parse(text: str) -> Module:
    """The module of a text."""
    plain = _COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
    version, target = re.search(r"\.version (\S+)", plain), re.search(r"\.target (\w+)", plain)
    assert version is not None and target is not None
    module = Module(version.group(1), target.group(1))
    at = target.end()
    item = re.compile(r"\.(?:visible|weak|extern|entry|func|global|shared|const|address_size)\b")
    while found := item.search(plain, at):
        head = _HEAD.match(plain, found.start())
        end = plain.find(";", found.start())
        if head is not None:
            at = _function(module, plain, head)
        elif plain.startswith(".address_size", found.start()):
            at = found.end()
        else:
            declared = re.sub(r"\.(?:visible|weak|extern)\s+", "", plain[found.start() : end])
            module.variables.append(variable(declared.strip()))
            at = end + 1
    return module


def _function(module: Module, text: str, head: re.Match[str]) -> int:
    """Read a function; where the text goes on."""
    opening = text.index("(", head.end())
    closing = text.index(")", opening)
    parameters = [variable(p.strip()) for p in text[opening + 1 : closing].split(",") if p.strip()]
    returns = [variable(p.strip()) for p in (head["returns"] or "").split(",") if p.strip()]
    brace = re.compile(r"[{;]").search(text, closing)
    assert brace is not None
    directives = text[closing + 1 : brace.start()]
    if brace.group() == ";":
        return brace.end()  # a declaration
    end = _closing(text, brace.start())
    function = Function(head["name"], head.group(1) == "entry", parameters, returns)
    if block := re.search(r"\.reqntid ([\d, ]+)", directives):
        function.block = tuple(int(n) for n in block.group(1).split(","))
    _body(function, text, brace.end(), end)
    module.functions[function.name] = function
    return end + 1


def _closing(text: str, start: int) -> int:
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match.group() == "{" else -1
        if not depth:
            return match.start()
    raise ValueError("a brace is not closed")


def variable(text: str) -> Variable:
    """A declaration, without the semicolon."""
    match = _VARIABLE.match(text)
    if match is None:
        raise ValueError(f"no PTX declaration: {text}")
    size = bits_of(match["type"]) // 8
    count = int(match["count"]) if match["count"] else 0 if match["count"] == "" else 1
    data = b""
    if match["data"]:
        numbers = [int(n, 0) for n in match["data"].strip(" {}\n").split(",")]
        data = b"".join((n % (1 << 8 * size)).to_bytes(size, "little") for n in numbers)
    align = int(match["align"] or match["of"] or size)
    return Variable(match["space"], match["name"], size * count, align, bool(match["pointer"]), data)


_REGISTERS = re.compile(r"\.reg \.(\w+)\s+(.*)$", re.S)


def _body(function: Function, text: str, start: int, end: int) -> None:
    """Statements end in semicolons, labels in colons. Names that braces enclose are made unlike those outside."""
    scopes: list[dict[str, str]] = []
    at, number = start, 0
    token = re.compile(r"\s*(?:(?P<brace>[{}])|(?P<label>[$\w]+):(?!:)|(?P<statement>[^;]*?);)", re.S)
    while at < end and (found := token.match(text, at)):
        if found.start(found.lastgroup or 0) >= end:
            break
        at = found.end()
        line = text.count("\n", 0, found.start(found.lastgroup or 0)) + 1
        if found["brace"]:
            number += 1
            scopes = [*scopes, {}] if found["brace"] == "{" else scopes[:-1]
            continue
        if found["label"]:
            function.body.append(Label(found["label"]))
            continue
        statement = found["statement"].strip()
        if registers := _REGISTERS.match(statement):
            _registers(function, registers.group(1), registers.group(2), scopes, number)
        elif statement.startswith(".branchtargets"):
            label = function.body.pop()
            assert isinstance(label, Label)
            function.tables[label.name] = tuple(p.strip() for p in statement[14:].split(","))
        elif statement.startswith((".pragma ", ".loc ", ".file ")):
            continue
        elif statement.startswith("."):
            declared = variable(statement)
            if declared.space == "param":
                function.body.append(declared)
            else:
                function.locals_.append(declared)
        elif statement:
            function.body.append(_instruction(statement, scopes, line))


def _registers(function: Function, type_: str, names: str, scopes: list[dict[str, str]], number: int) -> None:
    bits = bits_of(type_)
    for name in (n.strip() for n in names.split(",")):
        if several := re.match(r"(%\w+?)<(\d+)>", name):
            for n in range(int(several.group(2))):
                function.registers[f"{several.group(1)}{n}"] = bits
            continue
        known = f"{name}.{number}" if scopes else name
        if scopes:
            scopes[-1][name] = known
        function.registers[known] = bits


_INSTRUCTION = re.compile(r"(?:@(?P<guard>!?%\w+)\s+)?(?P<opcode>[\w.:]+)\s*(?P<operands>.*)$", re.S)


def _instruction(statement: str, scopes: list[dict[str, str]], line: int) -> Instruction:
    match = _INSTRUCTION.match(statement)
    if match is None:
        raise ValueError(f"no PTX instruction: {statement}")
    operands = " ".join(match["operands"].split())
    for scope in scopes:
        for name, known in scope.items():
            operands = re.sub(rf"(?<![\w%$]){re.escape(name)}(?!\w)", known, operands)
    return Instruction(match["opcode"], tuple(_split(operands)), match["guard"] or "", line)


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for n, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append(text[start:n].strip())
            start = n + 1
    return [*parts, text[start:].strip()] if text else []

"""Damages HLO texts, and compiles and runs what still verifies: ``python -m tests.hlo.text.damage --count 10000``.

Texts are those of the tests, or all in ``--folder``. Tokens, numbers, names, lines and whole instructions are dropped,
doubled, swapped or taken from another text; types, sizes and opcodes are changed throughout. Each text is read, or
refused by a HeronError; what verifies prints, reads back the same, compiles and runs. A child process does
the work: what ends it, or what takes too long to compile, is written to the output folder like any other exception.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import parse, print_module
from heron.hlo.verifier import problems
from tests.child import Child, serve
from tests.hlo.text.corpus.values import difference, inputs
from tests.support import program

#: elements that all values of a program may have together, to be run
MOST = 2_000_000
SMALL = "softmax cond_switch heat_while conv_variants fft sort_topk cholesky_solve gather_scatter".split()
HERE = Path(__file__).parent
ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"

_TOKEN = re.compile(r"[A-Za-z_%][\w.\-]*|-?\d+(?:\.\d+)?|->|\s+|.", re.DOTALL)
_TYPE = re.compile(r"\b(?:pred|bf16|[sufc]\d\w*)(?=\[)")
_SIZE = re.compile(r"(?<=[\[,=x])\d+(?=[\],x])")
_OPCODE = re.compile(r"(?<= )[a-z][a-z\-]*(?=\()")
_INSTRUCTION = re.compile(r"^.* = .*\(.*$", re.MULTILINE)
_SHARDING = re.compile(r"(?<=sharding=)\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}")
_NUMBERS = "0 1 2 3 7 -1 64 1000000 4294967296 99999999999999999999 1e999 3.5 nan".split()
_SIZES = "0 1 2 3 5 8 16 33".split()
_TYPES = "f32 f64 f16 bf16 s32 s8 u8 u32 s64 pred c64 s4 u4 f8e4m3fn f8e5m2 c128".split()
_OPCODES = (
    "add subtract multiply divide maximum minimum power remainder and or xor compare negate exponential tanh sign not "
    "abs sqrt copy reverse transpose reshape broadcast bitcast reduce sort tuple convert iota concatenate dot"
).split()


@cache
def texts() -> list[str]:
    """Programs, and the tables of small ones that have every attribute."""
    lines = [s.partition("\n")[2] for name in ("instructions", "corners") for s in _sections(name)]
    whole = [s.partition("\n")[2] for s in _sections("modules")]
    entries = [f"HloModule m\n{ADD}ENTRY e {{\n{body}\n}}\n" for body in lines]
    features = [(HERE / f"{name}.hlo").read_text() for name in ("features", "options")]
    return [*features, *(program(name).read_text() for name in SMALL), *entries, *whole]


def _sections(name: str) -> list[str]:
    return (HERE / f"{name}.txt").read_text().split("\n== ")[1:]


# -- damage ----------------------------------------------------------------------------------------------------------
def damaged(whole: list[str], seed: int) -> str:
    """One of the texts with one to three changes."""
    rnd = random.Random(seed)
    text = rnd.choice(whole)
    for _ in range(rnd.choice((1, 1, 2, 3))):
        text = rnd.choice(_CHANGES)(text, rnd, whole) or text
    return text


def _tokens(text: str, rnd: random.Random, _: list[str]) -> str:
    """A token dropped, doubled, or swapped with another one."""
    found = _TOKEN.findall(text)
    places = [n for n, token in enumerate(found) if not token.isspace()]
    if not places:
        return text
    at, other = rnd.choice(places), rnd.choice(places)
    match rnd.randrange(4):
        case 0:
            del found[at]
        case 1:
            found.insert(at, found[at])
        case 2:
            found[at] = found[other]
        case _:
            found[at], found[other] = found[other], found[at]
    return "".join(found)


def _number(text: str, rnd: random.Random, _: list[str]) -> str:
    return _one(re.compile(r"(?<![\w.])\d+(?:\.\d+)?"), text, rnd, rnd.choice(_NUMBERS))


def _opcode(text: str, rnd: random.Random, _: list[str]) -> str:
    return _one(_OPCODE, text, rnd, rnd.choice(_OPCODES))


def _one(pattern: re.Pattern[str], text: str, rnd: random.Random, new: str) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = rnd.choice(found)
    return text[: match.start()] + new + text[match.end() :]


def _all_of_one(pattern: re.Pattern[str], text: str, rnd: random.Random, choices: Sequence[str]) -> str:
    """The same change wherever one thing stands, which often leaves a valid program."""
    found = sorted(set(pattern.findall(text)))
    if not found:
        return text
    old, new = rnd.choice(found), rnd.choice(choices)
    return pattern.sub(lambda match: new if match[0] == old else match[0], text)


def _sizes(text: str, rnd: random.Random, _: list[str]) -> str:
    return _all_of_one(_SIZE, text, rnd, _SIZES)


def _types(text: str, rnd: random.Random, _: list[str]) -> str:
    return _all_of_one(_TYPE, text, rnd, _TYPES)


def _opcodes(text: str, rnd: random.Random, _: list[str]) -> str:
    return _all_of_one(_OPCODE, text, rnd, _OPCODES)


def _name(text: str, rnd: random.Random, _: list[str]) -> str:
    """An operand becomes another name of the text."""
    names = re.findall(r"^\s*(?:ROOT )?(%?[\w.\-]+) = ", text, re.MULTILINE)
    if not names:
        return text
    old, new = rnd.choice(names), rnd.choice(names)
    return _one(re.compile(rf"(?<=[(,{{ ]){re.escape(old)}(?=[,)}}])"), text, rnd, new)


def _lines(text: str, rnd: random.Random, _: list[str]) -> str:
    lines = text.split("\n")
    at, other = rnd.randrange(len(lines)), rnd.randrange(len(lines))
    match rnd.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case _:
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


def _spliced(text: str, rnd: random.Random, whole: list[str]) -> str:
    """An instruction of another text put in, or in the place of one."""
    ours, theirs = list(_INSTRUCTION.finditer(text)), _INSTRUCTION.findall(rnd.choice(whole))
    if not ours or not theirs:
        return text
    match, new = rnd.choice(ours), rnd.choice(theirs)
    end = match.end() if rnd.random() < 0.5 else match.start()
    return text[: match.start()] + new + "\n" * (end == match.start()) + text[end:]


def _sharding(text: str, rnd: random.Random, whole: list[str]) -> str:
    """A sharding becomes that of another instruction, of this text or of another one."""
    ours, theirs = list(_SHARDING.finditer(text)), _SHARDING.findall(rnd.choice((text, rnd.choice(whole))))
    if not ours or not theirs:
        return text
    match = rnd.choice(ours)
    return text[: match.start()] + rnd.choice(theirs) + text[match.end() :]


def _cut(text: str, rnd: random.Random, _: list[str]) -> str:
    return text[: rnd.randrange(len(text))] if text and rnd.random() < 0.3 else text


_CHANGES: tuple[Callable[[str, random.Random, list[str]], str], ...] = (
    _tokens, _tokens, _number, _number, _opcode, _opcodes, _sizes, _sizes, _types, _types, _name, _name, _lines,
    _spliced, _cut, _sharding, _sharding,
)  # fmt: skip


# -- trying ----------------------------------------------------------------------------------------------------------
def read(text: str) -> Module | None:
    """The module when it verifies; HeronErrors are fine. What prints must be read back, what verifies as the same."""
    try:
        module = parse(text)
        found = next(iter(problems(module)), None)
        if found is not None:
            found.error()
        printed = print_module(module)
    except HeronError:
        return None
    again = print_module(parse(printed))  # whatever it is
    if found is not None:
        return None
    assert print_module(parse(again)) == again, "it reads back as another text"  # one reading puts all in order
    return module


def small(module: Module) -> bool:
    """Whether all its values are small enough to be computed."""
    return sum(s.num_elements for i in module.instructions() for _, s in i.shape.leaves()) <= MOST


class _Tries:
    """What the child does: one text is read, compiled and run by three jobs, so that it is known what took so long."""

    def __init__(self) -> None:
        self._module: Module | None = None
        self._executable: Any = None

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """``{"status": "ok" | "refused" | "wrong", "error"}`` of one step."""
        try:
            return {"status": getattr(self, f"_{job['do']}")(job)}
        except HeronError as error:
            if job["do"] != "read":
                return {"status": "refused", "error": f"{error.code}: {error.what}"}
            return {"status": "wrong", "error": f"what was printed is not read: {error}"}
        except Exception:
            return {"status": "wrong", "error": traceback.format_exc()}

    def _read(self, job: dict[str, Any]) -> str:
        self._module = read(job["text"])
        return "ok" if self._module is not None and small(self._module) else "refused"

    def _compile(self, job: dict[str, Any]) -> str:
        import heron

        assert self._module is not None
        self._executable = heron.compile(self._module, target=job["target"])
        return "ok"

    def _run(self, job: dict[str, Any]) -> str:
        import heron

        assert self._module is not None
        arrays = inputs(self._module, "damage")
        if arrays is None:
            return "refused"
        found = self._executable.run(arrays)
        if job["values"]:
            wrong = difference(found, heron.evaluate(self._module, *arrays))
            assert wrong is None, wrong
        return "ok"


def tried(child: Child, text: str, values: bool = False, target: str = "cpu") -> tuple[str, str]:
    """How far a text came, and what went wrong; a run without an end is not wrong, its loop may have been damaged."""
    for step in ("read", "compile", "run"):
        answer = child.ask({"do": step, "text": text if step == "read" else "", "values": values, "target": target})
        status = answer["status"]
        if status == "refused" or (status == "timeout" and step == "run"):
            return f"{step} {status}", ""
        if status != "ok":
            return f"{step} {status}", answer.get("error", "")
    return "ran", ""


def main() -> int:
    p = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    p.add_argument("--count", type=int, default=2000, help="texts to try")
    p.add_argument("--seed", type=int, default=0, help="of the first text")
    p.add_argument("--folder", type=Path, help="damage the .hlo and .txt files there instead of the tests' texts")
    p.add_argument("--limit", type=float, default=20, help="seconds for each step of a text")
    p.add_argument("--target", default="cpu", help="to compile for: cpu, sim:sm_90, …")
    p.add_argument("--values", action="store_true", help="compare what runs with the evaluator")
    p.add_argument("--out", type=Path, default=Path("fuzz"))
    a = p.parse_args()
    whole = texts() if a.folder is None else _in_folder(a.folder)
    counts, wrong, start = Counter[str](), 0, time.monotonic()
    with Child("tests.hlo.text.damage", a.limit, "child") as child:
        for seed in range(a.seed, a.seed + a.count):
            text = damaged(whole, seed)
            outcome, error = tried(child, text, a.values, a.target)
            counts[outcome] += 1
            if error:
                wrong += 1
                a.out.mkdir(parents=True, exist_ok=True)
                path = a.out / f"damaged_{seed}.hlo"
                path.write_text(text)
                print(f"{path}: {outcome}\n{error}", flush=True)
    shown = ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common())
    print(f"{a.count} texts, {wrong} wrong, {time.monotonic() - start:.0f} s: {shown}")
    return 1 if wrong else 0


def _in_folder(folder: Path) -> list[str]:
    """Texts of at most 20,000 characters that parse."""
    found: list[str] = []
    for path in sorted(f for f in folder.rglob("*") if f.suffix in (".hlo", ".txt") and f.stat().st_size < 20_000):
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            parse(text, elided_as_zero=True)
        except HeronError:
            continue
        found.append(text)
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        serve(_Tries().answer)
    sys.exit(main())

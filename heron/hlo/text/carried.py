"""Annotations that stay text in the IR: checked, and brought into the one form XLA prints.

Each reader takes the text between and with its braces. Raises HeronError without a place, which the parser adds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from heron.errors import HeronError
from heron.hlo import sharding
from heron.hlo.ir.quoting import quote
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.words import Words
from heron.hlo.text import groups

CODE = "TXT017"
_STATISTIC = re.compile(r"\s*([\w.\-]+)\s*=\s*([^\s,]+)\s*")
_MODES = ("default", "highest")
_TOLERANCES = ("atol", "rtol", "ulps")


def _sharding(text: str) -> str:
    return str(_canonical(sharding.parse(text)))


def _canonical(found: sharding.Sharding) -> sharding.Sharding:
    """XLA's form of tiles; axes of a mesh stay as they are."""
    if found.is_tuple:
        return type(found).tuple(map(_canonical, found.elements))
    return found if found.named is not None else found.canonical()


def spread(text: str, shape: Shape) -> str:
    """The sharding of a tuple: one given for all leaves holds for each."""
    return text if text[:2] in ("{{", "{}") else str(sharding.parse(text).spread(shape))


@lru_cache(maxsize=4096)
def without_metadata(text: str) -> str:
    """A sharding without where it comes from."""
    return str(sharding.parse(text).with_metadata())


def _groups(text: str) -> str:
    found = groups.normal(text)
    if found is None:
        hint = "groups look like {{0,1},{2,3}}, [2,2]<=[4] or [2,2]<=[2,2]T(1,0)"
        raise HeronError(CODE, "these are not groups of devices", why=f"found {text[:60]}", hint=hint)
    return found


def _statistics(text: str) -> str | None:
    """``{visualizing_index=1,name=2.5}``; without an index there is nothing to show."""
    index: str | None = None
    parts: list[str] = []
    for part in text[1:-1].split(","):
        match = _STATISTIC.fullmatch(part)
        if match is None:
            raise HeronError(CODE, f"'{part.strip()[:40]}' is not a statistic", hint="statistics look like name=2.5")
        name, value = match.groups()
        try:
            number = float(value)
            if name == "visualizing_index":
                index = str(int(number))
            else:
                parts.append(f"{name}={number:.6g}")
        except (ValueError, OverflowError):
            raise HeronError(CODE, f"statistic '{name[:40]}' is not a number", why=f"found {value[:40]}") from None
    return None if index is None else "{" + ",".join([f"visualizing_index={index}", *parts]) + "}"


def _accuracy(text: str) -> str | None:
    """``{mode=highest}`` or ``{tolerance={atol=1,rtol=0.5,ulps=2}}``; None for the default."""
    w = Words(text, "result_accuracy", CODE)
    w.expect("{")
    kind = w.word()
    if kind not in ("mode", "tolerance"):
        w.n -= 1
        w.fail("mode or tolerance")
    w.expect("=")
    if kind == "mode":
        mode = w.word().lower()
        if mode not in _MODES:
            w.n -= 1
            w.fail(" or ".join(_MODES))
        found = None if mode == "default" else f"{{mode={mode}}}"
    else:
        values = dict.fromkeys(_TOLERANCES, 0.0)
        w.expect("{")
        while not w.accept("}"):
            name = w.word()
            if name not in values:
                w.n -= 1
                w.fail("atol, rtol or ulps")
            w.expect("=")
            values[name] = w.integer() if name == "ulps" else w.number()
            if w.next != "}":
                w.expect(",")
        shown = ",".join(f"{name}={value:.6g}" for name, value in values.items() if name != "ulps")
        found = f"{{tolerance={{{shown},ulps={int(values['ulps'])}}}}}"
    w.expect("}")
    w.end()
    return found


def _origin(text: str) -> str:
    """``{{"x"}}``, a tree of ``({"a"}, {"b" {1}})``, or ``{[synthetic_call]}``."""
    w = Words(text, "origin", CODE)

    def node() -> str:
        if w.accept("("):
            w.enter()
            parts: list[str] = []
            while not w.accept(")"):
                if parts:
                    w.expect(",")
                parts.append(node())
            w.leave()
            return "(" + ", ".join(parts) + ")"
        w.expect("{")
        if w.accept("}"):
            return "{}"
        name = quote(w.string())
        index = f" {{{','.join(map(str, w.integers('}')))}}}" if w.accept("{") else ""
        w.expect("}")
        return "{" + name + index.replace(" {}", "") + "}"

    w.expect("{")
    if w.accept("["):
        w.expect("synthetic_call")
        w.expect("]")
        found = "[synthetic_call]"
    else:
        found = node()
    w.expect("}")
    w.end()
    return "{" + found + "}"


_SPARSE = {"sparsity": "0x0", "dimension": "0", "stride": "0"}
_BY = re.compile(r"x\d{1,18}")


def _sparsity(text: str) -> str | None:
    """``{lhs={sparsity=1x4 dimension=3 stride=1} rhs={...}}``: how many of how many elements are not zero."""
    w = Words(text, "sparsity_config", CODE)
    sides: dict[str, dict[str, str]] = {}
    w.expect("{")
    while not w.accept("}"):
        if w.next not in ("lhs", "rhs"):
            w.fail("lhs or rhs")
        fields = sides.setdefault(w.word(), dict(_SPARSE))
        w.expect("=")
        w.expect("{")
        while not w.accept("}"):
            name = w.next
            if name not in fields:
                w.fail(", ".join(fields))
            w.n += 1
            w.expect("=")
            fields[name] = str(w.integer())
            if name == "sparsity":
                if not _BY.fullmatch(w.next):
                    w.fail("two numbers such as 1x4")
                fields[name] += w.word()
    w.end()
    if not sides:
        return None
    shown = [f"{side}={{{' '.join(f'{k}={v}' for k, v in fields.items())}}}" for side, fields in sorted(sides.items())]
    return "{" + " ".join(shown) + "}"


_DOMAIN = re.compile(r'\{\s*kind\s*=\s*"sharding"\s*,\s*entry\s*=\s*(\{.*\})\s*,\s*exit\s*=\s*(\{.*\})\s*\}', re.DOTALL)


def _domain(text: str) -> str:
    match = _DOMAIN.fullmatch(text)
    if match is None:
        hint = 'write {kind="sharding", entry={maximal device=0}, exit={maximal device=1}}'
        raise HeronError(CODE, "this is not a domain", hint=hint)
    return f'{{kind="sharding", entry={_sharding(match[1])}, exit={_sharding(match[2])}}}'


_NORMAL: dict[str, Callable[[str], str | None]] = {
    "sharding": _sharding,
    "replica_groups": _groups,
    "statistics": _statistics,
    "result_accuracy": _accuracy,
    "origin": _origin,
    "domain": _domain,
    "sparsity_config": _sparsity,
}


@lru_cache(maxsize=4096)
def normal(name: str, text: str) -> str | None:
    """The text of annotation `name` as XLA prints it; None when it says nothing."""
    read = _NORMAL.get(name)
    return text if read is None else read(text)

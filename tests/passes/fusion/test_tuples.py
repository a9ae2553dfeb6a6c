"""Tuples that are handed on whole, in any order in memory: to fusions, loops, branches, calls and callers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.hlo.verifier import verify

#: shapes of tuples: nested, with arrays in either order, an empty one
ARRAYS = st.sampled_from(["f32[2,3]{1,0}", "f32[2,3]{0,1}", "f32[4]", "s32[]"])
TUPLES = st.recursive(ARRAYS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5).filter(
    lambda s: isinstance(s, tuple) and len(s) > 0
)
USES = ("fusion", "nothing", "opt-barrier", "call", "while", "conditional", "tuple", "part", "copy")


def written(shape: object, layouts: bool = True) -> str:
    if isinstance(shape, tuple):
        return "(" + ", ".join(written(s, layouts) for s in shape) + ")"
    return str(shape) if layouts else str(shape).split("{")[0]


def turned(shape: object) -> object:
    """Every array in the other order."""
    if isinstance(shape, tuple):
        return tuple(turned(s) for s in shape)
    swap = {"f32[2,3]{1,0}": "f32[2,3]{0,1}", "f32[2,3]{0,1}": "f32[2,3]{1,0}"}
    return swap.get(str(shape), shape)


def program(shape: tuple, use: str, inside: bool, entry: str) -> str:
    """`shape` handed to `use` and given back. ``inside``: layouts are also written inside; ``entry``: where callers'
    are: nowhere, as written, or the result's the other way round."""
    t = written(shape, inside)
    p = f"p = {t} parameter(0)"
    body = "" if use not in ("fusion", "call", "conditional") else f"f {{ ROOT {p} }}\n"
    line, result = f"ROOT r = {t} {use}(p)", t
    match use:
        case "fusion":
            n = f"n{{ROOT x = {t} parameter(0)}}\n"
            body = n + f"f {{ {p}  q = {t} fusion(p), kind=kLoop, calls=n  ROOT u = ({t}, {t}) tuple(q, p) }}\n"
            line = f"ROOT r = ({t}, {t}) fusion(p), kind=kLoop, calls=f"
            result = f"({t}, {t})"
        case "nothing":
            line = f"ROOT {p}"
        case "call":
            line += ', to_apply=f, frontend_attributes={inlineable="false"}'
        case "conditional":
            line = (
                f"c = pred[] constant(true)  ROOT r = {t} conditional(c, p, p), true_computation=f, false_computation=g"
            )
            body += f"g {{ ROOT {p} }}\n"
        case "while":
            body = f"f {{ ROOT {p} }}\ng {{ {p}  ROOT c = pred[] constant(false) }}\n"
            line += ", condition=g, body=f"
        case "tuple":
            line, result = f"ROOT r = ({t}, {t}) tuple(p, p)", f"({t}, {t})"
        case "part":
            first = written(shape[0], inside)
            line, result = f"ROOT r = {first} get-tuple-element(p), index=0", first
    header = ""
    if entry:
        whole = {"fusion": (shape, shape), "tuple": (shape, shape), "part": shape[0]}.get(use, shape)
        gives = whole if entry == "as written" else turned(whole)
        header = f", entry_computation_layout={{({written(shape)})->{written(gives)}}}"
    before = "" if use == "nothing" else p
    assert result
    return f"HloModule m{header}\n{body}ENTRY e {{ {before}  {line} }}\n"


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@settings(max_examples=60, deadline=None)
@given(TUPLES, st.sampled_from(USES), st.booleans(), st.sampled_from(["", "as written", "turned"]))
def test_tuples_handed_on(target: str, shape: tuple, use: str, inside: bool, entry: str) -> None:
    text = program(shape, use, inside, entry)
    module = parse(text)
    verify(module)
    random = np.random.default_rng(0)
    inputs = [
        random.integers(0, 100, leaf.dims).astype(leaf.element_type.dtype)
        for p in module.entry.parameters
        for _, leaf in p.shape.leaves()
    ]
    wanted, got = evaluate(module, *inputs), heron.compile(module, target=target)(*inputs)
    for a, b in zip(_flat(got), _flat(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def _flat(value: object) -> list[object]:
    return [x for v in value for x in _flat(v)] if isinstance(value, (tuple, list)) else [value]

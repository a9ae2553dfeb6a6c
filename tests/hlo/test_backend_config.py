"""Configurations are read as XLA reads them: whatever JSON says, in any of the forms protobuf's reader takes."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import HeronError
from heron.hlo.calls import backend_config
from heron.hlo.text import parse as parse_hlo
from heron.hlo.text import print_module
from heron.hlo.verifier import verify

NAMES = st.sampled_from(["kind", "n", "block_m", "is_tma_allowed", "block_level_fusion_config", "a1_b2"])
TEXTS = st.text("a1 {}[]:,'\"\\/\n\té€", max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
CONFIGS = st.dictionaries(NAMES, VALUES, max_size=4)


def _loosely(value: object, draw: random.Random) -> str:
    """A value as a person may write it for protobuf's reader."""
    blank = draw.choice(["", " ", "\n "])
    if isinstance(value, dict):
        members = [f"{_name(n, draw)}{blank}:{blank}{_loosely(v, draw)}" for n, v in value.items()]
        return "{" + blank + f",{blank}".join(members) + draw.choice(["", ","] if members else [""]) + blank + "}"
    if isinstance(value, list):
        elements = [_loosely(v, draw) for v in value]
        return "[" + f"{blank},".join(elements) + draw.choice(["", ","] if elements else [""]) + "]"
    text = json.dumps(value, ensure_ascii=draw.random() < 0.5)
    if isinstance(value, str) and not set(value) & set("\"'\\") and draw.random() < 0.5:
        return f"'{text[1:-1]}'" if "\\" not in text else text
    return text


def _name(name: str, draw: random.Random) -> str:
    """Bare, in either quotes, or in camel case."""
    first, *rest = name.split("_")
    camel = first + "".join(part.capitalize() for part in rest)
    return draw.choice([name, f'"{name}"', f"'{name}'", camel, f'"{camel}"'])


@given(CONFIGS, st.randoms(use_true_random=False))
def test_every_form_says_the_same(config: dict, draw: random.Random) -> None:
    assert backend_config.parse(_loosely(config, draw)) == config


@given(CONFIGS, st.integers(0, 200), st.text("{}[]:,\"'\\ a1.-", max_size=3))
def test_damaged_text_is_refused_in_one_way(config: dict, at: int, put: str) -> None:
    text = json.dumps(config)
    try:
        backend_config.parse(text[:at] + put + text[at + 1 :])
    except ValueError as error:
        assert str(error)


@pytest.mark.parametrize("text", ["{" * 2000, '{"a":' + "1" * 5000 + "}", "", "{a:NaN}", "{a b}"])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        backend_config.parse(text)


@pytest.mark.parametrize(
    ("value", "found"),
    [("5", 5), (5, 5), (5.0, 5), ("1e999", None), (1e400, None), (-1, None), (1 << 80, None), (True, None), ([], None)],
)
def test_integers_as_protobuf_writes_them(value: object, found: int | None) -> None:
    assert backend_config.whole(value, 0, (1 << 63) - 1) == found


PROGRAM = "HloModule m\nENTRY e {{\n  x = f32[2]{{0}} parameter(0)\n  ROOT r = f32[2]{{0}} negate(x), {}\n}}\n"


@pytest.mark.parametrize("config", ["{sizes:[1]}", "{kind: '__triton', sizes: [1,],}", '{"fusionKind":"a"}'])
def test_programs_with_loose_configurations_verify(config: str) -> None:
    module = parse_hlo(PROGRAM.format(f"backend_config={config}"))
    verify(module)
    assert f"backend_config={config}" in print_module(module)


def test_a_configuration_that_is_no_json_is_named() -> None:
    with pytest.raises(HeronError, match="HLO157"):
        verify(parse_hlo(PROGRAM.format("backend_config={a b}")))


@given(st.text("{}()[]\"'\\,:=/ab*", max_size=16))
def test_any_configuration_prints_so_that_it_reads_back(inside: str) -> None:
    """Brackets need not be closed in it: braces and strings say where it ends, as in XLA."""
    module = parse_hlo(PROGRAM.format('backend_config="x"'))
    for config in (inside, "{" + inside + "}"):
        module.entry.root.extras["backend_config"] = config
        again = parse_hlo(print_module(module))
        assert again.entry.root.extras.get("backend_config", "") == config

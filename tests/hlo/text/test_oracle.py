"""XLA's own parser and printer (jaxlib) as the oracle, feature by feature: one text, printed the same by both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heron.errors import HeronError
from heron.hlo.ir import types
from heron.hlo.text import PrintOptions, parse, print_module
from heron.hlo.text.floats import format_all
from heron.hlo.tools.compare import difference

xla = pytest.importorskip("jaxlib._hlo")

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


FORMS = {
    "default": (xla.HloPrintOptions, PrintOptions),
    "short": (xla.HloPrintOptions.short_parsable, PrintOptions.short),
    "canonical": (xla.HloPrintOptions.canonical, PrintOptions.canonical),
    "fingerprint": (xla.HloPrintOptions.fingerprint, PrintOptions.fingerprint),
}


def by_xla(text: str, form: str = "default") -> str:
    options = FORMS[form][0]()
    options.print_large_constants |= form == "default"
    return xla.hlo_module_from_text(text).to_string(options)


def agree(text: str) -> None:
    """XLA and we print it alike in every form; what we print, both read as the same."""
    module = parse(text)
    for form, (_, ours) in FORMS.items():
        assert print_module(module, ours()) == by_xla(text, form), form
    printed = print_module(module)
    assert by_xla(printed) == printed
    assert difference(parse(printed), module) is None


def sections(name: str) -> dict[str, str]:
    found = (Path(__file__).parent / name).read_text().split("\n== ")[1:]
    return {title: body for title, _, body in (section.partition("\n") for section in found)}


def entry(body: str) -> str:
    return f"HloModule m\n{ADD}ENTRY e {{\n {body}\n}}\n"


LINES = sections("instructions.txt") | sections("corners.txt")
WHOLE = sections("modules.txt")
REJECTED = sections("rejected.txt")


@pytest.mark.parametrize("name", LINES)
def test_instructions(name: str) -> None:
    agree(entry(LINES[name]))


@pytest.mark.parametrize("name", WHOLE)
def test_modules(name: str) -> None:
    agree(WHOLE[name])


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str) -> None:
    body = REJECTED[name]
    text = body.partition("\n")[2] if body.startswith("#text") else entry(body)
    with pytest.raises(RuntimeError):
        xla.hlo_module_from_text(text)
    with pytest.raises(HeronError) as caught:
        parse(text, verify=True)
    assert caught.value.where is not None


HEADERS = {
    "aliases": "input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }",
    "replicas": "replica_count=2, num_partitions=4",
    "frontend": 'frontend_attributes={b="x",a={"k":1}}',
    "spmd": "allow_spmd_sharding_propagation_to_parameters={false,false}, "
    "allow_spmd_sharding_propagation_to_output={true}",
    "scheduled": "is_scheduled=true",
    "layout": "entry_computation_layout={(f32[2,3]{0,1}, f32[2,3])->f32[2,3]{0,1}}",
    "passthrough": "alias_passthrough_params=true",
}


@pytest.mark.parametrize("name", HEADERS)
def test_header(name: str) -> None:
    layout = "{0,1}" if name == "layout" else ""
    agree(
        f"HloModule m, {HEADERS[name]}\nENTRY e {{\n x = f32[2,3]{layout} parameter(0)\n y = f32[2,3] parameter(1)\n"
        f" w = f32[2,3]{layout} negate(x)\n ROOT z = f32[2,3]{layout} abs(x)\n}}"
    )


def test_names_are_made_unique_alike() -> None:
    reducers = [ADD.replace("add {", f"{name} {{") for name in ("f", "g", "h")]
    calls = "\n".join(f" r{n} = f32[] reduce(a, c), dimensions={{0}}, to_apply={n}" for n in "fgh")
    agree(
        f"HloModule m\n{''.join(reducers)}ENTRY e {{\n a = f32[4] parameter(0)\n c = f32[] constant(0)\n"
        f" a.1 = f32[4] negate(a)\n c.7 = f32[] constant(1)\n{calls}\n}}"
    )


def test_execution_thread() -> None:
    agree('HloModule m\nENTRY e {\n x = f32[] parameter(0)\n}, execution_thread="other"')


SMALL_FLOATS = [t.name for t in types.ALL if t.is_float and t.bits <= 16]


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_every_value_of_a_float_type(name: str) -> None:
    """XLA's parser takes -0 for an integer, which has no sign; ours keeps it, so -0 is compared as 0.

    Both read the smallest f8e8m0fnu, a subnormal f32, as the next larger one.
    """
    element_type = types.by_name(name)
    stored = np.uint16 if element_type.bits == 16 else np.uint8
    bits = np.arange(2**element_type.bits).astype(stored)
    words = format_all(element_type, bits.view(element_type.dtype))
    text = f"HloModule m\nENTRY e {{\n ROOT c = {name}[{len(words)}] constant({{{', '.join(words)}}})\n}}"
    assert by_xla(text) == print_module(parse(text)).replace("-0,", "0,")
    array = parse(text).entry.root.literal.array
    first = 1 if name == "f8e8m0fnu" else 0
    assert (array.view(stored) == bits)[first:].all()


def test_large_constants_are_elided_alike() -> None:
    words = ",".join(map(str, range(11)))
    text = f"HloModule m\nENTRY e {{\n c = s32[11] constant({{{words}}})\n ROOT t = (f32[]) constant((1))\n}}"
    ours = print_module(parse(text), PrintOptions(elide_large_constants=True))
    assert ours == xla.hlo_module_from_text(text).to_string()


READ_HERE_ONLY = {
    "grammar-words": "nan = f32[] parameter(0)\n manual = f32[] negate(nan)\n ROOT ENTRY = f32[] abs(manual)",
    "type-names": "s2 = f32[] parameter(0)\n f32 = f32[] negate(s2)",
    "listed-branches": "p = pred[] parameter(0)\n r = pred[] conditional(p, p, p), "
    "branch_computations={{ x = pred[] parameter(0) }, { x = pred[] parameter(0) }}",
    "inferred": "x = f32[4] parameter(0)\n y = slice(x), slice={[0:2]}",
}


@pytest.mark.parametrize("name", READ_HERE_ONLY)
def test_read_here_only(name: str) -> None:
    """More than XLA reads, but printed so that it does."""
    text = entry(READ_HERE_ONLY[name])
    with pytest.raises(RuntimeError):
        xla.hlo_module_from_text(text)
    printed = print_module(parse(text, verify=True))
    assert by_xla(printed) == printed


def test_comments_end_with_any_line() -> None:
    agree("HloModule m:\r// one\rENTRY e {\r// two\rROOT a = f32[1]{0} constant({12345}) // three\r}")


@pytest.mark.parametrize("body", ["n = f32[4] subtract(q, p)", "n = f32[4] subtract(p, p)"])
def test_what_a_short_spelling_cannot_say(body: str) -> None:
    """XLA prints the op on all operands in order, whatever its computation does with them."""
    text = (
        f"HloModule m\nw {{\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n ROOT {body}\n}}\nENTRY e {{\n"
        " x = f32[4] parameter(0)\n y = f32[4] negate(x)\n"
        " s = ((f32[4], f32[4]), f32[4], u32[]) async-start(x, y), calls=w\n ROOT d = f32[4] async-done(s)\n}"
    )
    printed = print_module(parse(text))
    assert "async-start(%x, %y), calls=%w" in printed
    assert difference(parse(printed), parse(text)) is None


@pytest.mark.parametrize("form", FORMS)
def test_annotations_of_what_an_async_start_runs(form: str) -> None:
    """They print as the async-start's own, and are read back as both's."""
    text = """HloModule m
host { a = s32[32]{0} parameter(0)
  ROOT m = s32[32]{0} multiply(a, a)
}, execution_thread="host"
w {
  q = s32[32]{0} parameter(0)
  ROOT call = s32[32]{0} call(q), to_apply=host, frontend_attributes={c="host"}
}, execution_thread="host"
ENTRY main {
  a = s32[32] parameter(0)
  start = ((s32[32]), s32[32], u32[]) async-start(a), async_execution_thread="host", calls=w
  ROOT done = s32[32] async-done(start), frontend_attributes={c="host"}
}
"""
    printed = print_module(parse(text), FORMS[form][1]())
    assert printed == by_xla(text, form)
    if form == "default":
        again = parse(printed)
        assert print_module(again) == by_xla(printed) == printed
        start = again.entry.root.operands[0]
        assert start.extras == start.calls.root.extras == {"frontend_attributes": {"c": "host"}}


@pytest.mark.parametrize("opcode", ["copy", "all-gather"])
def test_an_async_op_whose_short_spelling_is_another_op(opcode: str) -> None:
    more = ", dimensions={0}, replica_groups={}" if opcode == "all-gather" else ""
    text = (
        f"HloModule m\nw {{\n p = f32[4] parameter(0)\n ROOT c = f32[4] {opcode}(p){more}\n}}\nENTRY e {{\n"
        " x = f32[4] parameter(0)\n s = ((f32[4]), f32[4], u32[]) async-start(x), calls=w\n"
        " ROOT d = f32[4] async-done(s)\n}"
    )
    printed = print_module(parse(text))
    assert "async-start(%x), calls=%w" in printed
    assert difference(parse(printed), parse(text)) is None


def test_async_start_without_its_operands_is_spelled_out() -> None:
    """It does not verify, but is read again as it was."""
    text = (
        "HloModule m\nw {\n p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p)\n}\nENTRY e {\n"
        " s = ((f32[4]), f32[4], u32[]) async-start(), calls=w\n ROOT d = f32[4] async-done(s)\n}\n"
    )
    printed = print_module(parse(text))
    assert "async-start(), calls=%w" in printed and print_module(parse(printed)) == printed


def test_minus_zero_keeps_its_sign() -> None:
    text = entry("a = f32[3] constant({-0, 0, -0.0})\n b = c64[] constant((-0, -0))")
    assert "{-0, 0, -0}" in print_module(parse(text)) and "(-0, -0)" in print_module(parse(text))
    assert "{0, 0, -0}" in by_xla(text)

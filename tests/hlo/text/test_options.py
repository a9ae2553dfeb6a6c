"""Print options: XLA's printer (jaxlib) as the oracle, each option alone and in pairs, on top of each named form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from heron.cli.verbs.fmt import FORMS as FORM_NAMES
from heron.cli.verbs.fmt import SWITCHES
from heron.hlo.text import PrintOptions, parse, print_instruction, print_module
from heron.hlo.text.options import FORMS
from heron.hlo.tools.compare import difference
from tests.support import NAMES, program

TEXT = (Path(__file__).parent / "options.hlo").read_text()

#: XLA's name of a switch -> ours, and whether it means the opposite
SWITCHED = {
    "print_percent": ("percent", False),
    "print_program_shape": ("signatures", False),
    "print_ids": ("ids", False),
    "print_result_shape": ("result_shapes", False),
    "print_operand_shape": ("operand_shapes", False),
    "print_operand_names": ("operand_names", False),
    "compact_operands": ("compact_operands", False),
    "include_layout_in_shapes": ("layouts", False),
    "print_extra_attributes": ("attributes", False),
    "print_metadata": ("metadata", False),
    "print_backend_config": ("backend_config", False),
    "print_control_dependencies": ("control_predecessors", False),
    "print_large_constants": ("elide_large_constants", True),
    "canonicalize_instruction_names": ("canonical_names", False),
    "canonicalize_computations": ("canonical_order", False),
    "is_in_nested_computation": ("nested", False),
}

BASES: dict[str, tuple[str, Callable[[], PrintOptions]]] = {
    "default": ("__call__", lambda: PrintOptions(elide_large_constants=True)),
    "short": ("short_parsable", PrintOptions.short),
    "canonical": ("canonical", PrintOptions.canonical),
    "fingerprint": ("fingerprint", PrintOptions.fingerprint),
}


def xla_options(base: str) -> Any:
    options = pytest.importorskip("jaxlib._hlo").HloPrintOptions
    return options() if base == "default" else getattr(options, BASES[base][0])()


@pytest.mark.parametrize("base", BASES)
def test_switches_as_xla(base: str) -> None:
    xla = pytest.importorskip("jaxlib._hlo")
    theirs, ours = xla.hlo_module_from_text(TEXT), parse(TEXT)
    chosen = [c for size in range(3) for c in combinations(SWITCHED, size)]
    for switches in chosen:
        options, changes = xla_options(base), {}
        for name in switches:
            setattr(options, name, not getattr(options, name))
            field, opposite = SWITCHED[name]
            changes[field] = getattr(options, name) != opposite
        options.indent_amount = len(switches)
        changes["indent"] = len(switches)
        assert print_module(ours, replace(BASES[base][1](), **changes)) == theirs.to_string(options), switches


@pytest.mark.parametrize("name", NAMES)
def test_forms_of_programs(name: str) -> None:
    xla = pytest.importorskip("jaxlib._hlo")
    text = program(name).read_text()
    theirs, ours = xla.hlo_module_from_text(text), parse(text)
    for base, (_, make) in BASES.items():
        assert print_module(ours, make()) == theirs.to_string(xla_options(base)), base


def test_canonical_instruction() -> None:
    module = parse(TEXT)
    (reduce,) = (i for i in module.instructions() if i.opcode == "reduce")
    assert print_instruction(reduce, PrintOptions.canonical()) == (
        "f32[] reduce(f32[4]{0}, f32[]), dimensions={0}, to_apply=\n"
        "{\n"
        "  tmp_0 = f32[] parameter(0)\n"
        "  tmp_1 = f32[] parameter(1)\n"
        "  ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)\n"
        "}"
    )


def test_full_groups() -> None:
    text = "\n".join(
        f" y{n} = f32[4] all-gather(x), replica_groups={groups}, dimensions={{0}}"
        for n, groups in enumerate(("[2,3]<=[6]", "[3,2]<=[2,3]T(1,0)", "{{0,1}}", "[9,9]<=[80]", "[999999,9999]<=[9]"))
    )
    module = parse(f"HloModule m\nENTRY e {{\n x = f32[4] parameter(0)\n{text}\n}}")
    shown = print_module(module, PrintOptions(full_replica_groups=True))
    found = [
        line.partition("replica_groups=")[2].partition(", dim")[0] for line in shown.splitlines() if "all-g" in line
    ]
    assert found == ["{{0,1,2},{3,4,5}}", "{{0,3},{1,4},{2,5}}", "{{0,1}}", "[9,9]<=[80]", "[999999,9999]<=[9]"]


def test_without_calls() -> None:
    module = parse(TEXT)
    assert "calls=" not in print_module(module, PrintOptions(calls="off"))
    assert "} // body.7" in print_module(module, PrintOptions(name_after_brace=True))
    assert "async-start" in print_module(module, PrintOptions(async_sugar=False))
    assert "parameter()" in print_module(module, PrintOptions(parameter_numbers=False))


@pytest.mark.parametrize(
    "options",
    [
        PrintOptions(),
        PrintOptions(percent=False, signatures=False),
        PrintOptions(operand_shapes=True, index_comments=False),
        PrintOptions(async_sugar=False, name_after_brace=True),
        PrintOptions(indent=3),
        PrintOptions(canonical_order=True),
    ],
)
def test_parses_back(options: PrintOptions) -> None:
    module = parse(TEXT)
    text = print_module(module, options)
    again = parse(text)
    assert difference(again, module) is None
    assert print_module(again, options) == text


def test_command_line_has_every_option() -> None:
    assert {*SWITCHES, "calls", "nested", "indent"} == {f.name for f in fields(PrintOptions)}
    assert set(FORM_NAMES) == set(FORMS)

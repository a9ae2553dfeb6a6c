"""The program after every pass, stored as changes: read back, each version is what the printer prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heron import targets
from heron.backends.compiler import Compilation
from heron.frontends import load
from heron.hlo.ir.module import Module
from heron.hlo.ir.order import computation_order, print_order
from heron.hlo.text.printer import Printer
from heron.options import Options
from heron.trace import Trace
from heron.view.record.versions import OPTIONS, Versions, bodies

WORKLOADS = Path(__file__).parents[1] / "workloads" / "hlo"


def _printed(module: Module) -> list[list[str]]:
    printer = Printer(OPTIONS)
    schedule = module.schedule or {}
    return [
        [("ROOT " if i is c.root else "") + printer.instruction(i) for i in schedule.get(c) or print_order(c)]
        for c in computation_order(module)
    ]


@pytest.mark.parametrize(
    ("name", "target"),
    [("gpt2_train_step", "cpu"), ("lstm_scan", "sm_90"), ("cond_switch", "sm_90"), ("resnet_block_grad", "cpu")],
)
def test_every_version_is_what_the_printer_prints(name: str, target: str) -> None:
    trace = Trace(name, target)
    versions = Versions(trace)
    printed: list[list[list[str]]] = []

    def both(pass_name: str, module: Module) -> None:
        versions.after(pass_name, module)
        printed.append(_printed(module))

    trace.on_program = both
    module = load(WORKLOADS / f"{name}.small.hlo", verify=True)
    Compilation(module, targets.get(target), Options(), trace).passes()
    stored = json.loads(json.dumps(versions.to_json()))
    found = [[[stored["lines"][n] for n in body] for _, body in computations] for _, computations in bodies(stored)]
    assert found == printed
    changed = [n for n, p in enumerate(trace.passes) if p.changed]
    assert [number for number, _ in bodies(stored)] == [-1, *changed]


def test_a_line_that_moves_is_kept_once() -> None:
    """A version costs runs of the one before, not lines."""
    module = load(
        "HloModule m\nENTRY e { a = f32[4]{0} parameter(0) b = f32[4]{0} negate(a)"
        " c = f32[4]{0} exponential(a) ROOT d = f32[4]{0} add(b, c) }",
        verify=True,
    )
    versions = Versions(Trace())
    versions.after("", module)
    versions.after("nothing", module)
    module.entry.root.operands[0].name = "renamed"
    versions.after("rename", module)
    stored = versions.to_json()
    assert stored["versions"][1]["computations"] == [["ENTRY e", 0]]
    assert stored["lines"][4:] == ["%renamed = f32[4]{0} negate(%a)", "ROOT %d = f32[4]{0} add(%renamed, %c)"]
    assert stored["versions"][2]["computations"] == [["ENTRY e", [-1, 1, 4, -3, 1, 5]]]


def test_time_that_recording_takes_is_no_time_of_the_compile() -> None:
    trace = Trace()
    with trace.stage("passes"), trace.unclocked():
        sum(range(3_000_000))
    assert trace.seconds < 0.005

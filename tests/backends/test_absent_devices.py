"""A program for one device that names others is refused before its passes run."""

from __future__ import annotations

import pytest

import heron
from heron.errors import HeronError
from heron.trace import Trace

SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"


def text(step: str) -> str:
    return (
        f"HloModule m\n{SUM}ENTRY e {{\n  x = f32[4] parameter(0)\n  y = f32[4] {step}\n  ROOT z = f32[4] abs(y)\n}}\n"
    )


@pytest.mark.parametrize(
    "step",
    [
        "all-reduce(x), replica_groups={{0,1}}, to_apply=sum",
        "collective-permute(x), source_target_pairs={{0,1}}",
    ],
)
def test_other_devices_are_named(step: str) -> None:
    trace = Trace()
    with pytest.raises(HeronError, match="GEN012") as caught:
        heron.compile(heron.parse(text(step)), trace=trace)
    assert not trace.passes and "%y" in str(caught.value)


@pytest.mark.parametrize("step", ["all-reduce(x), replica_groups={{0}}, to_apply=sum", "all-reduce(x), to_apply=sum"])
def test_no_other_device_takes_part(step: str) -> None:
    assert heron.compile(heron.parse(text(step))) is not None

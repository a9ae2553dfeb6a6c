"""Compile options as bytes: those of jaxlib read, and ours read by jaxlib."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from heron import HeronError
from heron.pjrt import wire
from heron.pjrt.compile_options import CompileOptions

OURS = CompileOptions(
    num_replicas=1,
    num_partitions=4,
    device_assignment=((3, 1, 0, 2),),
    overrides={"heron_threads": "1", "flag": True, "off": False, "count": -2, "share": 1.5},
    use_spmd_partitioning=True,
    propagates_to_parameters=(False, True, True),
    propagates_to_outputs=(True, False),
    use_shardy_partitioner=True,
    process_count=1,
)


def theirs(**build: Any) -> Any:
    """jaxlib's options with these fields of the build options."""
    from jaxlib import xla_client

    options = xla_client.CompileOptions()
    for name, value in build.items():
        setattr(options.executable_build_options, name, value)
    return options


def test_options_of_jaxlib() -> None:
    from jaxlib import xla_client

    options = theirs(
        num_replicas=1,
        num_partitions=4,
        use_spmd_partitioning=True,
        use_shardy_partitioner=True,
        allow_spmd_sharding_propagation_to_parameters=[False, True, True],
        allow_spmd_sharding_propagation_to_output=[True, False],
        device_assignment=xla_client.DeviceAssignment.create(np.array([[3, 1, 0, 2]])),
    )
    options.env_option_overrides = list(OURS.overrides.items())
    assert CompileOptions.parse(options.SerializeAsString()) == OURS


def test_options_of_ours() -> None:
    from jaxlib import xla_client

    read = xla_client.CompileOptions.ParseFromString(OURS.serialize())
    build = read.executable_build_options
    assert (build.num_replicas, build.num_partitions) == (1, 4)
    assert build.use_spmd_partitioning and build.use_shardy_partitioner and not build.use_auto_spmd_partitioning
    assert list(build.allow_spmd_sharding_propagation_to_parameters) == [False, True, True]
    assert list(build.allow_spmd_sharding_propagation_to_output) == [True, False]
    assert dict(read.env_option_overrides) == OURS.overrides


@pytest.mark.parametrize(
    "options",
    [
        CompileOptions(),
        OURS,
        CompileOptions(num_replicas=2, num_partitions=2, device_assignment=((0, 1), (2, 3))),
        CompileOptions(
            use_auto_spmd_partitioning=True, auto_mesh_shape=(2, 4), auto_mesh_ids=tuple(range(8)), process_index=3
        ),
        CompileOptions(alias_passthrough_params=True, device_ordinal=5, propagates_to_outputs=(True,)),
    ],
)
def test_round_trip(options: CompileOptions) -> None:
    again = CompileOptions.parse(options.serialize())
    assert replace(again, device_assignment=()) == replace(options, device_assignment=())
    assert again.devices() == options.devices()


def test_repeated_fields_one_by_one() -> None:
    build = b"".join(wire.number(12, flag) for flag in (1, 0, 1)) + wire.number(5, 3)
    options = CompileOptions.parse(wire.text(3, build))
    assert options.propagates_to_outputs == (True, False, True) and options.num_partitions == 3
    more = wire.text(3, wire.packed(12, (0,)))  # a message that comes in two parts
    assert CompileOptions.parse(wire.text(3, build) + more).propagates_to_outputs == (True, False, True, False)


@pytest.mark.parametrize("data", [b"\x1a\x05", b"\xff" * 12, wire.text(3, wire.text(9, b"\x1a\x7f"))])
def test_bytes_that_are_no_options(data: bytes) -> None:
    with pytest.raises(HeronError, match="PJRT006"):
        CompileOptions.parse(data)

"""``heron shard --auto``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heron.cli.auto_shard import memory_of_text
from heron.errors import HeronError
from tests.analysis.sharding.test_parameters import TEXT
from tests.support import heron


@pytest.fixture
def network(tmp_path: Path) -> str:
    file = tmp_path / "network.hlo"
    file.write_text(TEXT)
    return str(file)


def test_what_was_chosen(network: str) -> None:
    text = heron("shard", network, "--mesh", "x=2,y=4", "--auto", "--memory", "7MB").out
    assert "--in 0=x,- --in 1=-,y --in 2=y,-" in text
    assert "estimated memory of a device: 26.0 MiB → 5.0 MiB" in text


@pytest.mark.parametrize("command", ["shard", "cost"])
def test_too_little_memory(network: str, command: str) -> None:
    shown = heron(command, network, "--mesh", "x=2,y=4", "--auto", "--memory", "1MB")
    assert shown.code != 0 and "CLI065" in shown.err and "1.0 MiB" in shown.err
    assert "the best of" in shown.err and "with no parameter split more, about 26.0 MiB" in shown.err


def test_options_say_the_same(network: str) -> None:
    found = json.loads(heron("shard", network, "--mesh", "x=2,y=4", "--auto", "--json").out)
    assert found["auto"]["options"] == ["0=x+y,-"]
    assert found["auto"]["limit"] is None
    again = json.loads(heron("shard", network, "--mesh", "x=2,y=4", "--in", "0=x+y,-", "--json").out)
    assert again["auto"] is None
    assert again["values"] == found["values"]


def test_given_parameters_stay(network: str) -> None:
    found = json.loads(heron("shard", network, "--mesh", "x=2,y=4", "--in", "1=x,-", "--auto", "--json").out)
    assert not any(option.startswith("1=") for option in found["auto"]["options"])


def test_nothing_left_to_split(network: str) -> None:
    given = ["--mesh", "x=2,y=4", "--in", "0=x", "--in", "1=x", "--in", "2=y", "--auto"]
    assert "--auto had nothing to choose" in heron("shard", network, *given).out
    shown = heron("shard", network, *given, "--memory", "1KiB")
    assert "CLI065" in shown.err and "no parameter is left to split, and the program needs" in shown.err


def test_no_axis_divides_a_parameter(network: str) -> None:
    shown = heron("shard", network, "--mesh", "x=7", "--auto")
    assert "CLI063" in shown.err and "among those whose axes divide the dimensions" in shown.err


@pytest.mark.parametrize(("text", "size"), [("80GiB", 80 * 2**30), ("1.5 M", 1.5 * 2**20), ("64", 64)])
def test_sizes(text: str, size: float) -> None:
    assert memory_of_text(text) == size


def test_no_size() -> None:
    with pytest.raises(HeronError, match="CLI060"):
        memory_of_text("much")

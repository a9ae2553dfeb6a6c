"""`heron shard` and `heron why --sharding`: shardings, reasons, collectives, pictures, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import heron

PROGRAM = """HloModule two_layers
ENTRY e {
  x = f32[8,16] parameter(0)
  w = f32[16,32] parameter(1)
  v = f32[32,16] parameter(2)
  h = f32[8,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[8,32] tanh(h)
  ROOT y = f32[8,16] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
SHARDED = ("--mesh", "x=2,y=4", "--in", "0=x", "--in", "w=-,y", "--in", "2=y")


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "layers.hlo"
    path.write_text(PROGRAM)
    return str(path)


def test_values_and_collectives(program: str) -> None:
    shown = heron("shard", program, *SHARDED)
    assert shown.code == 0, shown.err
    assert "two_layers over mesh['x'=2,'y'=4]: 8 devices" in shown.out
    rows = {line.split()[0]: line for line in shown.out.splitlines() if line.strip()}
    assert "[{'x'}, {'y'}]" in rows["t"] and "f32[4,8]" in rows["t"] and "'y' from %h (3)" in rows["t"]
    assert "all-reduce" in rows and " of memory at most" in shown.out


def test_json(program: str) -> None:
    document = json.loads(heron("shard", program, *SHARDED, "--json").out)
    assert document["devices"] == 8 and document["mesh"] == {"x": 2, "y": 4}
    values = {v["name"]: v for v in document["values"]}
    assert values["h"]["local_shape"] == "f32[4,8]"
    assert [s["source"] for s in values["h"]["steps"]] == ["x", "w"]
    (transfer,) = document["collectives"]
    assert transfer["opcode"] == "all-reduce" and transfer["devices"] == 4 and transfer["bytes"] == 4 * 16 * 4
    assert document["wire_bytes"] == transfer["wire_bytes"] > 0 and document["peak_bytes"] > 0


def test_the_chain_of_a_value(program: str) -> None:
    shown = heron("shard", program, *SHARDED, "--why", "t")
    assert shown.out.splitlines() == [
        "%t f32[8,32] is [{'x'}, {'y'}], f32[4,8] on each device",
        "  %t dimension 0: 'x' from %h by the tanh %t (level 3, along pass-through factors)",
        "  %h dimension 0: 'x' from %x by the dot %h (level 3, along pass-through factors)",
        "  %x dimension 0: 'x' given",
        "  %t dimension 1: 'y' from %h by the tanh %t (level 3, along pass-through factors)",
        "  %h dimension 1: 'y' from %w by the dot %h (level 3, along pass-through factors)",
        "  %w dimension 1: 'y' given",
    ]


def test_why_sharding_of_a_sharded_file(tmp_path: Path) -> None:
    path = tmp_path / "sharded.hlo"
    path.write_text("""HloModule m, num_partitions=2
ENTRY e {
  a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  ROOT n = f32[8] negate(a)
}
""")
    shown = heron("why", str(path), "--sharding", "n")
    assert shown.code == 0, shown.err
    assert "%a dimension 0: 'axis_0' given" in shown.out


#: a function that is imported before the program has arguments of the same names
CALLING = """
module @jit_f attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("params['w']"),
                         %arg1: tensor<4x8xf32>) -> tensor<8x8xf32> {
    %0 = call @scaled(%arg1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
  func.func private @scaled(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = call @twice(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func private @twice(%arg1: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.add %arg1, %arg1 : tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
"""


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("0", "f32[8,4]"),
        ("arg0", "f32[8,4]"),
        ("params['w']", "f32[8,4]"),
        ("params__w__", "f32[8,4]"),
        ("params__w__.7", "f32[8,4]"),
        ("%arg1", "f32[4,8]"),
        ("arg1.3", "f32[4,8]"),
    ],
)
def test_parameters_have_the_names_that_users_know(name: str, shape: str, tmp_path: Path) -> None:
    path = tmp_path / "calling.mlir"
    path.write_text(CALLING)
    shown = heron("shard", str(path), "--why", name, "--try")
    assert shown.code == 0, shown.err
    assert shown.out.split()[1] == shape and "bytes" in shown.out


def test_arguments_are_given_shardings_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "calling.mlir"
    path.write_text(CALLING.replace('{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}', ""))
    shown = heron("shard", str(path), "--mesh", "x=2", "--in", "params['w']=x", "--why", "arg0")
    assert shown.code == 0 and "dimension 0: 'x' given" in shown.out, shown.err


def test_an_unknown_value(program: str) -> None:
    shown = heron("shard", program, *SHARDED, "--why", "arg7")
    assert shown.code == 2 and "CLI039" in shown.err


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_collectives_are_those_of_the_program_as_it_runs(target: str, tmp_path: Path) -> None:
    """Exchanges that are combined count once, and a run takes no less than they do where nothing else runs beside."""
    lines = [
        f"  s{n} = f32[4,4] dot(a{n}, a{n}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}" for n in range(5)
    ]
    given = [f"  a{n} = f32[8,4] parameter({n}), sharding={{devices=[2,1]<=[2]}}" for n in range(5)]
    root = f"  ROOT t = ({', '.join(['f32[4,4]'] * 5)}) tuple({', '.join(f's{n}' for n in range(5))})"
    path = tmp_path / "sums.hlo"
    path.write_text("\n".join(["HloModule m, num_partitions=2", "ENTRY e {", *given, *lines, root, "}"]))
    document = json.loads(heron("shard", str(path), "--target", target, "--json").out)
    (transfer,) = document["collectives"]
    assert transfer["bytes"] == 5 * 4 * 4 * 4 and document["wire_bytes"] == 320
    assert document["seconds"] >= transfer["seconds"]


def test_tiles(program: str, tmp_path: Path) -> None:
    shown = heron("shard", program, *SHARDED, "--tiles", "t")
    assert shown.out.splitlines()[2:] == [
        "       0:8  8:16  16:24  24:32",
        "  0:4  0    1     2      3",
        "  4:8  4    5     6      7",
    ]
    picture = tmp_path / "tiles.svg"
    assert heron("shard", program, *SHARDED, "--tiles", "t", "--draw", str(picture)).code == 0
    assert picture.read_text().count("<rect") == 8


def test_graph(program: str, tmp_path: Path) -> None:
    picture = tmp_path / "graph.svg"
    assert heron("shard", program, *SHARDED, "--draw", str(picture)).code == 0
    assert "[{'x'}, {'y'}]: f32[4,8]".replace("'", "&#x27;") in picture.read_text()


def test_a_sharded_file_on_another_mesh(tmp_path: Path) -> None:
    path = tmp_path / "sharded.hlo"
    path.write_text("""HloModule m, num_partitions=4
ENTRY e {
  a = f32[64] parameter(0), sharding={mesh['x'=2,'y'=2], [{'x', 'y'}]}
  ROOT n = f32[64] negate(a)
}
""")
    document = json.loads(heron("shard", str(path), "--mesh", "x=8,y=4", "--json").out)
    assert document["devices"] == 32 and document["values"][-1]["local_shape"] == "f32[2]"


@pytest.mark.parametrize(
    "options, code, words",
    [
        (("--mesh", "x=2", "--in", "0=z"), "CLI061", "the mesh has no axis 'z'"),
        (("--mesh", "x=3", "--in", "0=x"), "CLI062", "8 elements in 3 parts"),
        (("--mesh", "x=2", "--in", "7=x"), "CLI061", "there is no parameter 7"),
        (("--mesh", "x=2", "--in", "0=x,x"), "CLI061", "used twice"),
        (("--mesh", "x=2", "--in", "0=x,-,-"), "CLI061", "3 dimensions are given"),
        (("--mesh", "x=two"), "CLI060", "'x=two' is no axis"),
        (("--mesh", "x=2", "--out", "1=x"), "CLI061", "there is no result 1"),
        ((), "CLI063", "one device"),
        ((*SHARDED, "--tiles", "nothing"), "CLI039", "no sharded value"),
        ((*SHARDED, "--draw", "x.png"), "CLI034", "is not a picture"),
    ],
)
def test_errors(program: str, options: tuple[str, ...], code: str, words: str) -> None:
    shown = heron("shard", program, *options)
    assert shown.code == 2 and code in shown.err and words in shown.err, shown.err


def test_the_example_is_what_jax_makes(root: Path = Path(__file__).parents[2]) -> None:
    """docs/use/sharding.md shows it; JAX may only rename and renumber."""
    import subprocess
    import sys

    made = subprocess.run(
        [sys.executable, str(root / "examples" / "sharded_matmul.py")], capture_output=True, text=True, timeout=300
    )
    assert made.stdout == (root / "examples" / "sharded_matmul.mlir").read_text(), made.stderr


def test_changes_of_one_axis_that_save_bytes(tmp_path: Path) -> None:
    """The two constraints of a chain differ; the value between them may follow either, or neither."""
    mesh = "mesh['x'=2]"
    path = tmp_path / "held.hlo"
    path.write_text(f"""HloModule held, num_partitions=2
ENTRY e {{
  a = f32[8,8] parameter(0), sharding={{{mesh}, [{{'x'}}, {{}}]}}
  n = f32[8,8] negate(a), sharding={{{mesh}, [{{}}, {{'x'}}]}}
  t = f32[8,8] tanh(n)
  ROOT c = f32[8,8] copy(t), sharding={{{mesh}, [{{'x'}}, {{}}]}}
}}""")
    shown = heron("shard", str(path), "--why", "a", "--try")
    assert shown.code == 0, shown.err
    assert "no change of one axis sends fewer bytes than" in shown.out
    document = json.loads(heron("shard", str(path), "--why", "t", "--try", "--json").out)
    assert any("bytes" in line for line in document["lines"])

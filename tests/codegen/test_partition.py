"""The partitioner: what becomes a function, what is repeated, what stays in line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.analysis.fusion.fusion import as_fusion
from heron.analysis.fusion.output_boxes import whole_pieces
from heron.analysis.fusion.partition import Partition, partition
from heron.codegen.emitters import output_boxes
from heron.codegen.emitters.base import Frame
from tests.codegen.emitters.test_loop import random_body
from tests.codegen.run_kernel import compare, evaluate, root_fusion, run_cpu, run_sim
from tests.codegen.test_elemental_indexing import array, source


def cut(shapes: list[str], body: str) -> Partition:
    return partition(as_fusion(root_fusion(source(shapes, body))).roots)


def called(p: Partition) -> dict[str, list[str]]:
    """Function name -> what it calls."""
    return {f.name: [p.functions[c].name for c in f.calls] for f in [*p.entries, *p.functions.values()]}


def test_elementwise_is_one_function() -> None:
    p = cut(["f32[8]"], "a = f32[8] exponential(p0)\n b = f32[8] add(a, a)\n ROOT r = f32[8] multiply(b, a)")
    assert called(p) == {"entry": []}
    assert [i.opcode for i in p.entries[0].instructions] == ["exponential", "add", "multiply"]


def test_log_transpose_add() -> None:
    p = cut(
        ["f32[4,4]"],
        "l = f32[4,4] log(p0)\n t = f32[4,4] transpose(l), dimensions={1,0}\n ROOT r = f32[4,4] add(l, t)",
    )
    assert called(p) == {"entry": ["l"], "l": []}
    text = re.sub(r"\.\d+", "", str(p))
    assert text == (
        "entry(p0, [4], [4]) -> r:\n  t = transpose(l)\n  r = add(l, t)\n  calls l\n"
        "l(p0, [4], [4]) -> l:\n  l = log(p0)"
    )


def test_slices_of_one_value_and_a_pad() -> None:
    p = cut(
        ["f32[8]", "f32[]"],
        "e = f32[8] exponential(p0)\n a = f32[4] slice(e), slice={[0:4]}\n b = f32[4] slice(e), slice={[4:8]}\n"
        " c = f32[4] add(a, b)\n ROOT r = f32[6] pad(c, p1), padding=1_1",
    )
    assert called(p) == {"entry": ["e"], "e": []}


def test_the_same_index_by_two_ways_is_one_place() -> None:
    """Two transposes that undo each other, a reshape there and back: the index is the same, so is the function."""
    p = cut(
        ["f32[4,6]"],
        "e = f32[4,6] exponential(p0)\n t = f32[6,4] transpose(e), dimensions={1,0}\n"
        " u = f32[4,6] transpose(t), dimensions={1,0}\n s = f32[24] reshape(e)\n v = f32[4,6] reshape(s)\n"
        " w = f32[4,6] add(u, v)\n ROOT r = f32[4,6] add(w, e)",
    )
    assert called(p) == {"entry": []}


def test_cheap_values_are_repeated() -> None:
    p = cut(
        ["bf16[4,4]", "f32[4]"],
        "c = f32[4,4] convert(p0)\n b = f32[4,4] broadcast(p1), dimensions={0}\n n = f32[4,4] negate(b)\n"
        " t = f32[4,4] transpose(c), dimensions={1,0}\n u = f32[4,4] transpose(n), dimensions={1,0}\n"
        " x = f32[4,4] add(c, t)\n y = f32[4,4] add(n, u)\n ROOT r = f32[4,4] add(x, y)",
    )
    assert called(p) == {"entry": []}


def test_a_function_computes_what_is_moved() -> None:
    """Parts of a concatenation that is read through a reshape: the place in it is known where it is read."""
    p = cut(
        ["s32[30,10]", "f32[30,10]"],
        "e = s32[30,10] multiply(p0, p0)\n f = s32[30,10] multiply(e, e)\n"
        " n = s32[30,10,1] iota(), iota_dimension=0\n v = s32[30,10,1] reshape(f)\n"
        " c = s32[30,10,2] concatenate(n, v), dimensions={2}\n i = s32[300,2] reshape(c)\n"
        " g = f32[300,1,1] gather(p1, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1},"
        " index_vector_dim=1, slice_sizes={1,1}\n ROOT r = f32[30,10] reshape(g)",
    )
    (function,) = p.functions
    assert function.opcode == "concatenate" and p.entries[0].calls == [function]


def test_regions_are_places_of_their_own() -> None:
    """A value read inside a reduction's loop and outside it is computed in both: the two never meet."""
    p = cut(
        ["f32[4,4]", "f32[]"],
        "e = f32[4,4] exponential(p0)\n s = f32[4] reduce(e, p1), dimensions={1}, to_apply=add\n"
        " b = f32[4,4] broadcast(s), dimensions={0}\n ROOT r = f32[4,4] divide(e, b)",
    )
    assert called(p) == {"entry": []}


def test_outputs_of_equal_dimensions_share_the_entry() -> None:
    body = (
        "e = f32[4,6] exponential(p0)\n n = f32[4,6] negate(e)\n t = f32[6,4] transpose(e), dimensions={1,0}\n"
        " ROOT r = (f32[4,6], f32[4,6]) tuple(e, n)"
    )
    assert called(cut(["f32[4,6]"], body)) == {"entry": [], "entry_1": []}
    other = body.replace("(f32[4,6], f32[4,6]) tuple(e, n)", "(f32[4,6], f32[6,4]) tuple(e, t)")
    assert called(cut(["f32[4,6]"], other)) == {"entry": [], "entry_1": []}


def test_boundaries_and_provided_values() -> None:
    root = as_fusion(root_fusion(source(["f32[8]"], "x = f32[8] exponential(p0)\n ROOT r = f32[8] tanh(x)"))).roots[0]
    a = root.operands[0]
    name = a.name.replace(".", "_")
    assert called(partition([root], boundaries=[a])) == {"entry": [name], name: []}
    p = partition([root], provided=[a])
    assert [i.opcode for i in p.entries[0].instructions] == ["tanh"] and p.entries[0].parameters == []


ONE = (
    "a = f32[1] tanh(x)\n b = f32[] reshape(a)\n c = f32[] sine(b)\n d = f32[1] reshape(c)\n ROOT r = f32[1] add(d, a)"
)


def test_the_one_place_of_one_element_is_one_place() -> None:
    assert called(cut(["f32[1]"], "x = f32[1] exponential(p0)\n " + ONE)) == {"entry": []}


def test_functions_read_no_provided_value() -> None:
    """It is there in the emitter's own loops only."""
    body = "x = f32[6] exponential(p0)\n a = f32[6] tanh(x)\n v = f32[6] reverse(a), dimensions={0}\n"
    root = as_fusion(root_fusion(source(["f32[6]"], body + " ROOT r = f32[6] add(a, v)"))).roots[0]
    a = root.operands[0]
    assert calls(partition([root])) == {"entry": ["a"], "a": []}
    assert called(partition([root], provided=[a.operands[0]])) == {"entry": []}


@pytest.mark.parametrize("depth", [3000])
def test_long_chains(depth: int) -> None:
    lines = ["x0 = f32[4] exponential(p0)"] + [f"x{n} = f32[4] sine(x{n - 1})" for n in range(1, depth)]
    p = cut(["f32[4]"], "\n".join([*lines, f"ROOT r = f32[4] negate(x{depth - 1})"]))
    assert len(p.entries[0].instructions) == depth + 1


def test_chains_do_not_double() -> None:
    """Rounds that each mix two values, both handed out at the end: no function calls two that call two …"""
    lines = ["x0 = u32[8] negate(p0)", "y0 = u32[8] not(p0)"]
    for n in range(12):
        lines.append(f"x{n + 1} = u32[8] add(x{n}, y{n})")
        lines.append(f"y{n + 1} = u32[8] xor(y{n}, x{n + 1})")
    body = "\n ".join([*lines, "ROOT r = u32[16] concatenate(x12, y12), dimensions={0}"])
    p = cut(["u32[8]"], body)
    assert sum(len(f.calls) for f in [*p.entries, *p.functions.values()]) <= 2


def calls(p: Partition) -> dict[str, list[str]]:
    """What `called` gives, without the numbers of names."""
    return {re.sub(r"_\d+$", "", k): sorted(re.sub(r"_\d+$", "", c) for c in v) for k, v in called(p).items()}


#: name: parameter shapes, body, what calls what
SHARING: dict[str, tuple[list[str], str, dict[str, list[str]]]] = {
    "slice and pad": (  # what is padded stands under a condition of its own, where the value outside is not at hand
        ["f32[8]", "f32[]"],
        "e = f32[8] exponential(p0)\n s = f32[6] slice(e), slice={[2:8]}\n q = f32[8] pad(s, p1), padding=1_1\n"
        " ROOT r = f32[8] add(e, q)",
        {"entry": []},
    ),
    "two slices and a pad": (  # but in that place it is read at two indices
        ["f32[8]", "f32[]"],
        "e = f32[8] exponential(p0)\n s = f32[6] slice(e), slice={[2:8]}\n t = f32[6] slice(e), slice={[0:6]}\n"
        " u = f32[6] add(s, t)\n q = f32[8] pad(u, p1), padding=1_1\n ROOT r = f32[8] add(e, q)",
        {"entry": ["e"], "e": []},
    ),
    "reverse": (
        ["f32[8]"],
        "e = f32[8] exponential(p0)\n v = f32[8] reverse(e), dimensions={0}\n ROOT r = f32[8] add(e, v)",
        {"entry": ["e"], "e": []},
    ),
    "two transposes, one place": (
        ["f32[4,4]"],
        "e = f32[4,4] exponential(p0)\n t = f32[4,4] transpose(e), dimensions={1,0}\n"
        " a = f32[4,4] tanh(t)\n b = f32[4,4] sine(t)\n ROOT r = f32[4,4] add(a, b)",
        {"entry": []},
    ),
    "a chain of functions": (
        ["f32[4,4]"],
        "e = f32[4,4] exponential(p0)\n t = f32[4,4] transpose(e), dimensions={1,0}\n x = f32[4,4] add(e, t)\n"
        " l = f32[4,4] log(x)\n u = f32[4,4] transpose(l), dimensions={1,0}\n ROOT r = f32[4,4] add(l, u)",
        {"entry": ["l"], "l": ["e"], "e": []},
    ),
    "broadcast along two ways": (
        ["f32[4]"],
        "e = f32[4] exponential(p0)\n a = f32[4,4] broadcast(e), dimensions={0}\n"
        " b = f32[4,4] broadcast(e), dimensions={1}\n ROOT r = f32[4,4] subtract(a, b)",
        {"entry": ["e"], "e": []},
    ),
    "concatenate twice the same": (
        ["f32[4]"],
        "e = f32[4] exponential(p0)\n ROOT r = f32[8] concatenate(e, e), dimensions={0}",
        {"entry": []},  # each part is a region of its own, and only one of them runs
    ),
    "concatenate and its part": (
        ["f32[4]", "f32[4]"],
        "e = f32[4] exponential(p0)\n c = f32[8] concatenate(e, p1), dimensions={0}\n"
        " b = f32[8,4] broadcast(c), dimensions={0}\n d = f32[8,4] broadcast(e), dimensions={1}\n"
        " ROOT r = f32[8,4] add(b, d)",
        {"entry": []},
    ),
    "diagonal": (
        ["f32[4,4]", "f32[4]"],
        "e = f32[4,4] exponential(p0)\n s = f32[1,4] slice(e), slice={[0:1],[0:4]}\n q = f32[4] reshape(s)\n"
        " w = f32[1,4] slice(e), slice={[3:4],[0:4]}\n v = f32[4] reshape(w)\n ROOT r = f32[4] add(q, v)",
        {"entry": ["e"], "e": []},
    ),
    "reductions of one value": (
        ["f32[4,6]", "f32[]"],
        "e = f32[4,6] exponential(p0)\n a = f32[4] reduce(e, p1), dimensions={1}, to_apply=add\n"
        " t = f32[6,4] transpose(e), dimensions={1,0}\n b = f32[4] reduce(t, p1), dimensions={0}, to_apply=add\n"
        " ROOT r = f32[4] multiply(a, b)",
        {"entry": []},  # two loops: nothing computed in one is there in the other
    ),
    "many places": (
        ["f32[8]"],
        "e = f32[8] exponential(p0)\n"
        + "".join(f" s{n} = f32[2] slice(e), slice={{[{n}:{n + 2}]}}\n" for n in range(6))
        + " a = f32[2] add(s0, s1)\n b = f32[2] add(s2, s3)\n c = f32[2] add(s4, s5)\n d = f32[2] add(a, b)\n"
        " ROOT r = f32[2] add(c, d)",
        {"entry": ["e"], "e": []},
    ),
}


@pytest.mark.parametrize("name", SHARING)
def test_sharing(name: str) -> None:
    shapes, body, wanted = SHARING[name]
    assert calls(cut(shapes, body)) == wanted


def test_functions_need_only_their_own_tensors() -> None:
    p = cut(
        ["f32[4,4]", "f32[4,4]"],
        "l = f32[4,4] log(p1)\n t = f32[4,4] transpose(l), dimensions={1,0}\n a = f32[4,4] add(l, t)\n"
        " ROOT r = f32[4,4] multiply(a, p0)",
    )
    (function,) = p.functions.values()
    assert [x.number for x in function.parameters] == [1]
    assert [x.number for x in p.entries[0].parameters] == [0, 1]


@settings(max_examples=25)
@given(st.data())
def test_however_it_is_cut_it_computes_the_same(data: st.DataObject) -> None:
    """Any instructions as functions: the values are the evaluator's, on the CPU and on the simulated GPU."""
    shapes, body = random_body(np.random.default_rng(data.draw(st.integers(0, 1000))), 8)
    root = root_fusion(source(shapes, body))
    fusion = as_fusion(root)
    inner = [i for i in fusion.computation.instructions if i.opcode not in ("parameter", "tuple")]
    chosen = data.draw(st.sets(st.sampled_from(inner), max_size=4))
    target = data.draw(st.sampled_from(["cpu", "sim:sm_90"]))
    frame = Frame.of(fusion, partition(fusion.roots, chosen), "k", targets.get(target), any_layout=True)
    emit = output_boxes.emit_gpu if frame.is_gpu else output_boxes.emit_cpu
    kernel = emit(frame, whole_pieces(fusion), "loop")
    inputs = [np.clip(array(s), -2, 2) for s in shapes]
    got = run_cpu(kernel, inputs) if target == "cpu" else run_sim(kernel, inputs)
    for g, w in zip(got, evaluate(root, inputs), strict=True):
        compare(g, w, rtol=1e-5, atol=1e-5)

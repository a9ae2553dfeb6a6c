"""What is wrong with a StableHLO text is said once, with a code, at its place."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.errors import HeronError, Span
from heron.frontends.stablehlo.importer import parse
from tests.support import WORKLOADS


def body(lines: str, result: str = "%a") -> str:
    kind = "tensor<4x6xf32>"
    return f"func.func @main(%a: {kind}, %i: tensor<i32>) -> {kind} {{\n{lines}\n  return {result} : {kind}\n}}\n"


CASES = [
    ("SHLO001", body("%0 = stablehlo.add %a, %a tensor<4x6xf32>"), "expected ':'", 2),
    ("SHLO001", "module @m {", "never closed", 1),
    ("SHLO001", body('%0 = stablehlo.custom_call @"f'), "", 2),
    ("SHLO002", body("%0 = stablehlo.addd %a, %a : tensor<4x6xf32>"), "did you mean 'stablehlo.add'?", 2),
    ("SHLO002", body("%0 = arith.addf %a, %a : tensor<4x6xf32>"), "lower the program to StableHLO", 2),
    ("SHLO003", body("%0 = stablehlo.add %a, %aa : tensor<4x6xf32>"), "did you mean '%a'?", 2),
    ("SHLO003", body("%i = stablehlo.add %a, %a : tensor<4x6xf32>"), "defined twice", 2),
    ("SHLO004", body("%0 = stablehlo.negate %a : (tensor<4x6xf32>) -> tensor<6x4xf32>"), "the text says f32[6,4]", 2),
    ("SHLO004", body("%0 = stablehlo.reshape %a : (tensor<4x6xf32>) -> tensor<24xf32>", "%0"), "says f32[4,6]", 3),
    ("SHLO004", body("return %i : tensor<i32>"), "do not fit", 1),
    ("SHLO004", body("return %a, %i : tensor<4x6xf32>"), "2 operands but 1 types", 2),
    ("SHLO004", body('"func.return"(%a) : (tensor<4x6xf64>) -> ()'), "the text says f64[4,6]", 2),
    (
        "SHLO004",
        body(
            "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "%0 = stablehlo.reduce(%a init: %z) across dimensions = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<f32>\n"
            "reducer(%x: tensor<f32>, %y: tensor<f32>) {\n%1 = stablehlo.add %x, %y : tensor<f32>\n"
            "stablehlo.return %1 : tensor<f64>\n}"
        ),
        "operand 0 of stablehlo.return is f32[]",
        6,
    ),
    (
        "SHLO004",
        body("%0 = stablehlo.convert %a : (tensor<4x6xf32>) -> tensor<4x6x!quant.uniform<i8:f32, 0.1>>"),
        "uniform_quantize",
        2,
    ),
    ("SHLO005", body("%0 = stablehlo.convert %a : (tensor<4x6xf32>) -> memref<4xf32>"), "memref", 2),
    (
        "SHLO006",
        body("%0 = stablehlo.transpose %a : (tensor<4x6xf32>) -> tensor<6x4xf32>"),
        "'permutation' is missing",
        2,
    ),
    (
        "SHLO006",
        body(
            "%0 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>],"
            " result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<4x6xf32>) -> tensor<4x6xf32>"
        ),
        "matrices whose columns lie in one piece",
        2,
    ),
    ("SHLO008", body("%0 = call @mian(%a) : (tensor<4x6xf32>) -> tensor<4x6xf32>"), "did you mean '@main'?", 2),
    ("SHLO008", body("%0 = call @main(%a, %i) : (tensor<4x6xf32>, tensor<i32>) -> tensor<4x6xf32>"), "cycle", 2),
    ("SHLO009", body("%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>"), "2 values given, 3 needed", 2),
    ("SHLO009", body("%0 = stablehlo.constant dense<300> : tensor<i8>"), "between -128 and 127", 2),
    ("SHLO009", body('%0 = stablehlo.constant dense<"0x00zz"> : tensor<3xi32>'), "", 2),
    (
        "SHLO011",
        "func.func @main(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {\n return %a : tensor<?x4xf32>\n}",
        "dimension 0 of argument 0",
        1,
    ),
    ("HLO010", body("%0 = stablehlo.add %a, %i : (tensor<4x6xf32>, tensor<i32>) -> tensor<4x6xf32>"), "", 2),
    (
        "SHLO010",
        body(
            """  %s = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
  %0 = "stablehlo.reduce"(%a, %s) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %s : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>"""
        ),
        "from outside this region",
        5,
    ),
    ("SHLO001", "func.func @main() {\n  %0 = ", "text ends here", 2),
    (
        "SHLO006",
        body("%0 = stablehlo.compare GT, %a, %a, FOO : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>"),
        "'FOO' is not a kind of comparison",
        2,
    ),
    ("SHLO004", body("%0 = stablehlo.bitcast_convert %a : (tensor<4x6xf32>) -> tensor<4x6xi1>"), "", 2),
    *(
        (
            "SHLO006",
            body(
                f'%0 = "stablehlo.dot_general"(%a, %a) <{{dot_dimension_numbers = #stablehlo.dot<'
                f"lhs_contracting_dimensions = [{number}], rhs_contracting_dimensions = [1]>}}> : "
                "(tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>"
            ),
            "must be a list of integers",
            2,
        )
        for number in ("1.0", "3.5", "true")
    ),
    (
        "SHLO006",
        body(
            "%0 = stablehlo.dot_general %a, %a, contracting_dims = [1.5] x [1] : "
            "(tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>"
        ),
        "two lists of dimensions",
        2,
    ),
    (
        "SHLO006",
        body(
            "%t = stablehlo.create_token : !stablehlo.token\n"
            '%0:2 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1.5, type = 3>, '
            "is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4x6xf32>, !stablehlo.token)"
        ),
        "an integer for handle",
        3,
    ),
    ("SHLO007", body("%0 = stablehlo.custom_call @f(%a) {x = " + "[" * 100 + "a"), "nested too deeply", 2),
    ("SHLO007", body('%0 = "stablehlo.if"(%a) ({ ' * 100), "nested too deeply", 0),
]


@pytest.mark.parametrize(("code", "source", "says", "line"), CASES)
def test_error(code: str, source: str, says: str, line: int) -> None:
    with pytest.raises(HeronError) as caught:
        parse(source, "model.mlir", verify=True)
    error = caught.value
    assert error.code == code, error
    assert says in str(error)
    assert isinstance(error.where, Span) and error.where.filename == "model.mlir"
    assert not line or error.where.line == line, error


def test_a_single_function_is_the_entry_whatever_its_name() -> None:
    assert parse("func.func @f(%a: tensor<f32>) -> tensor<f32> {\n return %a : tensor<f32>\n}").entry.name == "f"


def test_no_function_at_all() -> None:
    with pytest.raises(HeronError, match="SHLO008"):
        parse("module {}")


SEEDS = [
    (WORKLOADS / "stablehlo" / f"{name}.small.mlir").read_text()
    for name in ("conv_variants", "cond_switch", "heat_while", "embedding_grad", "fft", "sort_topk")
]
PIECES = ["%0", "%arg0", ")", "(", "{", "}", "<", ">", "[", "]", ",", ":", "->", '"', "dense<>", "tensor<?xf32>", "-1"]
PIECES += ["[0, 1]", "x", "tensor<4xi1>", "loc(#loc)", "#", "99999999999999999999", "tensor<0x0xf32>", "\n", "é", "="]


@settings(max_examples=200)
@given(st.data())
def test_damaged_text_is_a_module_or_an_error(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        end = min(len(text), at + data.draw(st.integers(0, 40)))
        piece = data.draw(st.sampled_from(["", text[end : end + 20], *PIECES]))
        text = text[:at] + piece + text[end:]
    try:
        parse(text, verify=True)
    except HeronError as error:
        assert error.code[:4] in ("SHLO", "HLO0", "HLO1"), error


def constant(value: str, kind: str) -> str:
    return f"func.func @main() -> {kind} {{\n %0 = stablehlo.constant {value} : {kind}\n return %0 : {kind}\n}}"


LARGE = {
    "one value everywhere": (constant("dense<0.0>", "tensor<1000000000000xf32>"), ""),
    "one value as bytes": (constant('dense<"0x00000000">', "tensor<1000000000000xf32>"), ""),
    "more elements than there are": (constant("dense<1>", "tensor<4000000000x4000000000xi8>"), "HLO007"),
    "bits that are missing": (constant('dense<"0x01">', "tensor<100000000000xi1>"), "SHLO009"),
    "a long number": (constant(f"dense<{'9' * 100_000}>", "tensor<i32>"), "SHLO009"),
    "more dimensions than NumPy has": (constant("dense<0.0>", f"tensor<{'1x' * 300}f32>"), "SHLO006"),
    "a resource": (constant("dense_resource<blob>", "tensor<5xf32>"), "SHLO001"),
    "lists in lists": ("module attributes {a = " + "[" * 100_000, "SHLO007"),
    "dictionaries in dictionaries": ("module attributes {a = " + "{a=" * 50_000, "SHLO007"),
    "tuples in tuples": ("func.func @main(%a: " + "tuple<" * 50_000, "SHLO007"),
    "an alias of itself": ("#a = #b\n#b = #a\nmodule attributes {x = #a} {}", "SHLO007"),
    "many results": ('func.func @main() -> tensor<f32> {\n %0:99999 = "stablehlo.foo"() : () -> ()\n}', "SHLO002"),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_is_small_in_memory_or_an_error(name: str) -> None:
    text, code = LARGE[name]
    tracemalloc.start()
    try:
        parse(text, verify=True)
        found = ""
    except HeronError as error:
        found = error.code
        assert isinstance(error.where, Span) and len(str(error)) < 2000
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found == code
    assert peak < 100 << 20


@pytest.mark.parametrize(
    "text", ["module {}" + " " * 300_000, "module {" + "tensor<" * 20_000, "module {" + "(" * 50_000]
)
def test_long_lines_take_no_long_time(text: str) -> None:
    with pytest.raises(HeronError, match="SHLO00[18]"):
        parse(text)

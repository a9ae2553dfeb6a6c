"""``einsum``: products by letters, as sums, one dot and a transpose."""

from __future__ import annotations

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.lower.products import precision
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction


@rule("einsum", "unary_einsum")
def _einsum(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """``ij,jk->ik``: letters of both operands are multiplied along, those the result lacks are summed over."""
    inputs, result = _letters(op, operands)
    terms = [
        _summed(b, x, word, set(result).union(*_others(inputs, n))) for n, (x, word) in _numbered(operands, inputs)
    ]
    x, word = terms[0]
    if len(terms) == 2:
        x, word = _product(b, op, terms, result)
    order = tuple(word.index(letter) for letter in result)
    return x if order == tuple(range(len(order))) else b.add("transpose", (x,), dimensions=order)


def _numbered(operands: list[Instruction], inputs: list[str]) -> list[tuple[int, tuple[Instruction, str]]]:
    return list(enumerate(zip(operands, inputs, strict=True)))


def _others(inputs: list[str], n: int) -> list[set[str]]:
    return [set(word) for k, word in enumerate(inputs) if k != n]


def _letters(op: Operation, operands: list[Instruction]) -> tuple[list[str], str]:
    """The letters of each operand and of the result. Raises SHLO005, SHLO006."""
    config = op.word("config", "einsum_config").replace(" ", "")
    left, arrow, result = config.partition("->")
    inputs = left.split(",")
    if not arrow or not all(word.isalpha() or not word for word in (*inputs, result)):
        op.fail("SHLO005", f"the einsum '{config[:40]}' is not supported", hint="letters only, such as ij,jk->ik")
    if any(len(set(word)) != len(word) for word in (*inputs, result)):
        why = "a letter that occurs twice in one operand picks a diagonal"
        op.fail("SHLO005", f"the einsum '{config[:40]}' is not supported", why=why)
    if [len(word) for word in inputs] != [o.shape.rank for o in operands] or not set(result) <= set(left):
        why = ", ".join(str(o.shape.bare) for o in operands)
        op.fail("SHLO006", f"'{config[:40]}' does not fit the operands", why=why)
    return inputs, result


def _summed(b: Block, x: Instruction, word: str, kept: set[str]) -> tuple[Instruction, str]:
    """The operand without the letters nobody else has."""
    gone = tuple(n for n, letter in enumerate(word) if letter not in kept)
    if not gone:
        return x, word
    t = x.shape.element_type
    x = b.add("reduce", (x, b.scalar(0, t)), dimensions=gone, to_apply=b.importer.reducer("add", t))
    return x, "".join(letter for letter in word if letter in kept)


def _product(b: Block, op: Operation, terms: list[tuple[Instruction, str]], result: str) -> tuple[Instruction, str]:
    (x, left), (y, right) = terms
    both = [letter for letter in left if letter in right]
    batch = [letter for letter in both if letter in result]
    inner = [letter for letter in both if letter not in result]
    attrs = {}
    for side, word in (("lhs", left), ("rhs", right)):
        attrs[f"{side}_batch_dims"] = tuple(word.index(letter) for letter in batch)
        attrs[f"{side}_contracting_dims"] = tuple(word.index(letter) for letter in inner)
    free = [letter for word in (left, right) for letter in word if letter not in both]
    i = b.add("dot", (x, y), **{name: dims for name, dims in attrs.items() if dims}, **precision(op))
    return i, "".join(batch + free)

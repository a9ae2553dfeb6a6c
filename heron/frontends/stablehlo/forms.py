"""The custom forms of operations: most are operands and ``name = value`` pairs in any mixture; the others are below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from heron.frontends.stablehlo.attributes import Attributes
from heron.frontends.stablehlo.constants import ELSEWHERE
from heron.frontends.stablehlo.lexer import END
from heron.frontends.stablehlo.syntax import Argument, Operation, Region, Symbol, Text
from heron.hlo.ir.shape import Shape

#: operations Shardy writes when it partitions a program
BY_PARTITIONER = tuple(
    f"sdy.{name}"
    for name in (
        "all_gather all_reduce all_slice all_to_all collective_permute func_data_flow_edge reduce_scatter"
        " replicated_to_unreduced sharded_to_unreduced"
    ).split()
)

Form = Callable[[Any, Operation], None]
_FORMS: dict[str, Form] = {}


def form(*names: str) -> Callable[[Form], Form]:
    """Declare the custom form of operations."""

    def register(read: Form) -> Form:
        _FORMS.update(dict.fromkeys(names, read))
        return read

    return register


class Forms(Attributes):
    """A cursor that reads operations in their custom form."""

    custom_forms: ClassVar[dict[str, Form]] = _FORMS

    def region(self, arguments: list[Argument] | None = None) -> Region:
        raise NotImplementedError

    def location(self) -> int:
        raise NotImplementedError

    def arguments(self, attributes: bool) -> list[Argument]:
        raise NotImplementedError

    def need_dialect(self, op: Operation) -> None:
        raise NotImplementedError

    # -- parts -------------------------------------------------------------------------------------------------------
    def plain(self, op: Operation) -> None:
        """``name %a, LT, %b, dims = [0] x [1] {…} : types``; the items may stand in parentheses."""
        if "." not in op.name:
            self.need_dialect(op)
        inside = self.accept("(")
        if not (inside and self.accept(")")):
            self.items(op)
            if inside:
                self.expect(")")
        self.ending(op)

    def items(self, op: Operation) -> None:
        """Operands, bare words and ``name = value`` pairs, separated by commas."""
        tokens = self.tokens
        while True:
            token = tokens[self.n]
            if token[:1] == "%":
                op.operands.append(token)
                self.n += 1
            elif tokens[self.n + 1] == "=" and (token[:1].isalpha() or token[:1] == "_"):
                self.n += 2
                self.pair(op, token)
            elif token[:1].isalpha() and tokens[self.n + 1] in (",", ":", "{"):
                op.words.append(token)
                self.n += 1
            elif token != "," or not op.operands:  # a list without operands leaves its comma
                return
            if tokens[self.n] != ",":
                return
            self.n += 1

    def pair(self, op: Operation, name: str) -> None:
        """A value, or two joined by ``x``."""
        if name in op.attrs:
            self.fail("SHLO001", f"'{name[:40]}' is given twice", self.n - 2)
        value = self.untyped()
        if self.accept("x"):
            op.attrs[name] = (value, self.value())
        else:
            op.attrs[name] = value

    def untyped(self) -> Any:
        """A value; a colon behind it belongs to the operation."""
        first = self.tokens[self.n][:1]
        if first == '"':
            return self.string()
        return self.number(typed=False) if first == "-" or first.isdigit() else self.value()

    def ending(self, op: Operation) -> None:
        """Attributes and types."""
        if self.tokens[self.n] == "{":
            op.attrs = {**op.attrs, **self.dictionary()}
        if self.accept(":"):
            op.given, op.types = self.stated_types(len(op.results))
        elif op.results:
            self.unexpected("':' and the types")

    def stated_types(self, count: int) -> tuple[tuple[Shape, ...] | None, tuple[Shape, ...]]:
        """The types behind the colon, of the operands and of `count` results: those of a function type, or on the sides
        of an arrow. A list is of the operands where there are no results, and else ends with the results' types."""
        token = self.tokens[self.n]
        if token[:1] == "(":
            return self.signature()
        listed = self.type_list()
        if self.accept("->"):
            return listed, self.results()
        if not count:
            return listed, ()
        return None, listed[len(listed) - count :] if count < 2 else listed

    def operands(self) -> list[str]:
        """``(%a, %b)``."""
        self.expect("(")
        found: list[str] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            found.append(self.value_name())
        return found


# -- constants and slices --------------------------------------------------------------------------------------------
@form("stablehlo.constant", "chlo.constant", "sdy.constant")
def _constant(p: Forms, op: Operation) -> None:
    """``constant {…} dense<…> : type``; the value stays text, with its type it is one token's worth of caching.

    Constants of a quantized type are ``constant() <{value = …}> : () -> type``.
    """
    if p.accept("("):
        p.expect(")")
        if p.accept("<"):
            op.attrs = p.dictionary()
            p.expect(">")
        return p.ending(op)
    if p.tokens[p.n] == "{":
        op.attrs = p.dictionary()
    token = p.tokens[p.n]
    if ELSEWHERE in op.attrs and tuple(p.tokens[p.n : p.n + 4]) == ("dense_resource", "<", "__elided__", ">"):
        p.n += 4
        p.expect(":")
        op.types = (p.type(),)
        return
    if token[:6] != "dense<":
        p.unexpected(
            "dense<…>", hint="write the values as dense<…>; elided ones are lost" if "dense" in token else None
        )
    p.n += 1
    p.expect(":")
    op.words.append(token)
    op.types = (p.type(),)


@form("stablehlo.slice", "stablehlo.get_tuple_element")
def _slice(p: Forms, op: Operation) -> None:
    """``slice %a [0:4, 1:9:2]``; ``get_tuple_element %a[0]``."""
    op.operands.append(p.value_name())
    token = p.tokens[p.n]
    if len(token) > 1 and token[0] == "[":
        op.attrs["index"] = p.ints()
    else:
        p.expect("[")
        ranges: list[tuple[int, int, int]] = []
        while not p.accept("]"):
            if ranges:
                p.expect(",")
            start = p.integer()
            p.expect(":")
            limit = p.integer()
            ranges.append((start, limit, p.integer() if p.accept(":") else 1))
        op.attrs["slice"] = tuple(ranges)
    p.ending(op)


# -- calls -----------------------------------------------------------------------------------------------------------
@form("func.call")
def _call(p: Forms, op: Operation) -> None:
    """``call @f(%a) : types``."""
    callee = Symbol(p.symbol())
    op.operands = p.operands()
    p.ending(op)
    op.attrs["callee"] = callee


@form("stablehlo.custom_call")
def _custom_call(p: Forms, op: Operation) -> None:
    """``custom_call @target(%a) {…} : types``."""
    target = p.symbol()
    op.operands = p.operands()
    p.ending(op)
    op.attrs["call_target_name"] = target


@form("stablehlo.composite")
def _composite(p: Forms, op: Operation) -> None:
    """``composite "name" %a, %b {…} : types``."""
    name = p.string()
    p.items(op)
    p.ending(op)
    op.attrs["name"] = name


@form("sdy.sharding_constraint")
def _sharding_constraint(p: Forms, op: Operation) -> None:
    """``sharding_constraint %a <@mesh, […]> : type``."""
    op.operands.append(p.value_name())
    op.attrs["sharding"] = p.balanced()
    p.ending(op)


@form("sdy.reshard")
def _reshard(p: Forms, op: Operation) -> None:
    """``reshard %a <@mesh, […]> : type``."""
    _sharding_constraint(p, op)


@form("sdy.sharding_group", "sdy.propagation_barrier", "sdy.data_flow_edge")
def _one_pair(p: Forms, op: Operation) -> None:
    """``sharding_group %a group_id=3 : type``, without a comma; of a structure its text is kept."""
    op.operands.append(p.value_name())
    if p.tokens[p.n] not in (":", "{"):
        name = p.word("an attribute")
        p.expect("=")
        op.attrs[name] = p.balanced() if p.tokens[p.n] == "<" else p.untyped()
    p.ending(op)


@form(*BY_PARTITIONER)
def _by_partitioner(p: Forms, op: Operation) -> None:
    """``all_gather […] %a out_sharding=<…> : type``, which only needs to be stepped over."""
    while p.tokens[p.n] != ":":
        if p.tokens[p.n] in ("[", "{", "<", "("):
            p.skip_balanced()
        elif p.tokens[p.n] == END:
            p.unexpected("':' and the types")
        else:
            p.n += 1
    p.ending(op)


@form("sdy.named_computation")
def _named_computation(p: Forms, op: Operation) -> None:
    """``named_computation<"name">(%a) in_shardings=[…] out_shardings=[…] (%b: type) {…} : types``."""
    p.expect("<")
    op.attrs["name"] = p.string()
    p.expect(">")
    op.operands = p.operands()
    _shardings(p, op, "in_shardings", "out_shardings")
    op.regions.append(p.region(p.arguments(attributes=False)))
    p.ending(op)


@form("sdy.manual_computation")
def _manual_computation(p: Forms, op: Operation) -> None:
    """``manual_computation(%a) in_shardings=[…] out_shardings=[…] manual_axes={…} (%b: type) {…} : types``."""
    op.operands = p.operands()
    _shardings(p, op, "in_shardings", "out_shardings", "manual_axes")
    op.regions.append(p.region(p.arguments(attributes=False)))
    p.ending(op)


def _shardings(p: Forms, op: Operation, *names: str) -> None:
    """``name=[…]`` after each other, those that are there."""
    for name in names:
        if not p.accept(name):
            continue
        p.expect("=")
        if len(token := p.tokens[p.n]) > 1:  # an empty list, one token
            p.n += 1
            op.attrs[name] = Text(token)
        else:
            op.attrs[name] = p.balanced()


@form("chlo.scan")
def _scan(p: Forms, op: Operation) -> None:
    """``scan(%a) inits (%b) dimension=0 [attributes {…}] {…} : types``."""
    inputs = p.operands()
    p.expect("inits")
    inits = p.operands()
    op.operands = inputs + inits
    p.expect("dimension")
    p.expect("=")
    dimension = p.integer()
    op.attrs = p.dictionary() if p.accept("attributes") else {}
    op.attrs |= {"dimension": dimension, "operandSegmentSizes": (len(inputs), len(inits))}
    op.regions.append(p.region())
    p.ending(op)


# -- ops with regions ------------------------------------------------------------------------------------------------
@form("stablehlo.reduce")
def _reduce(p: Forms, op: Operation) -> None:
    """``reduce(%a init: %b), (…) [applies op] across dimensions = […] : types [reducer(…) (…) {…}]``."""
    arrays: list[str] = []
    inits: list[str] = []
    while True:
        p.expect("(")
        arrays.append(p.value_name())
        p.expect("init")
        p.expect(":")
        inits.append(p.value_name())
        p.expect(")")
        if not p.accept(","):
            break
    op.operands = arrays + inits
    if p.accept("applies"):
        op.words.append(p.word("an operation"))
    p.expect("across")
    p.expect("dimensions")
    p.expect("=")
    op.attrs["dimensions"] = p.ints()
    p.ending(op)
    if op.words:
        return
    p.expect("reducer")
    lefts: list[Argument] = []
    rights: list[Argument] = []
    while p.tokens[p.n] == "(":
        p.n += 1
        lefts.append(_argument(p))
        p.expect(",")
        rights.append(_argument(p))
        p.expect(")")
    op.regions.append(p.region(lefts + rights))


def _argument(p: Forms) -> Argument:
    name = p.value_name()
    p.expect(":")
    return Argument(name, p.type(), p.location())


@form("stablehlo.while")
def _while(p: Forms, op: Operation) -> None:
    """``while(%a = %x, …) : types [attributes {…}] cond {…} do {…}``."""
    names: list[str] = []
    p.expect("(")
    while not p.accept(")"):
        if names:
            p.expect(",")
        names.append(p.value_name())
        p.expect("=")
        op.operands.append(p.value_name())
    if p.accept(":"):
        op.types = p.type_list()
    if len(op.types) != len(names):
        op.fail("SHLO004", f"while has {len(names)} values but {len(op.types)} types")
    if p.accept("attributes"):
        op.attrs = p.dictionary()
    for keyword in ("cond", "do"):
        p.expect(keyword)
        op.regions.append(p.region([Argument(n, t) for n, t in zip(names, op.types, strict=True)]))


@form("stablehlo.convolution")
def _convolution(p: Forms, op: Operation) -> None:
    """``convolution(%a, %b) dim_numbers = […]x[…]->[…], window = {…} {…} : types``."""
    op.operands = p.operands()
    p.expect("dim_numbers")
    p.expect("=")
    op.attrs["dimension_numbers"] = p.convolution_dimensions()
    p.expect(",")
    p.expect("window")
    p.expect("=")
    op.attrs["window"] = p.dictionary()
    p.ending(op)

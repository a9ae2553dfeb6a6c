"""DynamicSizes: what the size of every dynamic dimension of a program is, and what must hold for the sizes to fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from heron.analysis.dynamic_sizes.size import Algebra, Place, Size, dynamic_places, surely_at_most
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.records import dataclass

Sizes = dict[Place, Size]
#: fills in the sizes of an instruction's result
Rule = Callable[["DynamicSizes", Instruction], Sizes]
RULES: dict[str, Rule] = {}


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Decorator: how sizes go through these ops."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(opcodes, function))
        return function

    return register


@dataclass(frozen=True, slots=True)
class Check:
    """Two sizes of which `left` must be ``equal`` to, or ``at most``, `right` for an instruction to have a meaning."""

    at: Instruction
    what: str
    left: Size
    relation: str
    right: Size

    def __str__(self) -> str:
        sign = "==" if self.relation == "equal" else "<="
        return f"%{self.at.name}: {self.what}: {self.left} {sign} {self.right}"


class DynamicSizes:
    """The sizes of a module's dynamic dimensions, as formulas, found in one walk over it.

    A formula speaks of values of its own computation: of sizes that come in with a parameter, or with the result of a
    loop that changes them, and of numbers the program computes. ``checks`` are, by computation, the conditions on
    sizes that do not follow from the program alone.
    """

    def __init__(self, module: Module) -> None:
        self.algebra = Algebra()
        self.checks: dict[Computation, list[Check]] = {}
        self._sizes: dict[Instruction, Sizes] = {}
        for c in module.post_order():
            for i in c.post_order():
                self.infer(i)

    # -- questions ---------------------------------------------------------------------------------------------------
    def of(self, i: Instruction) -> Sizes:
        """The sizes of those dimensions, of all parts of `i`, that are not what the shape states."""
        return self._sizes.get(i, {})

    def size(self, x: Instruction, d: int) -> Size | None:
        """The size of dimension `d` of an array; None when it is what the shape states."""
        return self.of(x).get(((), d))

    def whole(self, x: Instruction, d: int) -> Size:
        """The size of dimension `d` of an array, stated or not."""
        found = self.size(x, d)
        return self.number(x.shape.dims[d]) if found is None else found

    def number(self, n: int) -> Size:
        """A size known now."""
        return self.algebra.number(n)

    # -- for rules ---------------------------------------------------------------------------------------------------
    def value(self, x: Instruction) -> Size:
        """The value of an integer scalar, as a formula if it is a constant or some dimension's size."""
        if x.opcode == "constant":
            return self.number(int(x.attrs["literal"].array))
        if x.opcode == "get-dimension-size":
            return self.whole(x.operands[0], x.dimensions[0])
        return self.algebra.value(x)

    def unknown(self, i: Instruction) -> Sizes:
        """Sizes that only the value itself tells."""
        return {place: self.algebra.of(i, place) for place in dynamic_places(i.shape)}

    def need_equal(self, at: Instruction, what: str, left: Size, right: Size) -> None:
        """Two sizes must be the same for `at`."""
        if left is not right:
            self._check(Check(at, what, left, "equal", right))

    def need_at_most(self, at: Instruction, what: str, left: Size, right: Size | int) -> None:
        """One size must not exceed another for `at`."""
        right = self.number(right) if isinstance(right, int) else right
        if not surely_at_most(left, right):
            self._check(Check(at, what, left, "at most", right))

    def agreed(
        self, at: Instruction, what: str, operands: Iterable[tuple[Instruction, int]], static_follows: bool = False
    ) -> Size | None:
        """The size all of these dimensions must have; None when none of them is dynamic.

        With ``static_follows`` arrays without one take the size of those that have one.
        """
        places = list(operands)
        found = [s for x, d in places if (s := self.size(x, d)) is not None]
        if not found:
            return None
        for other in found[1:] if static_follows else (self.whole(x, d) for x, d in places):
            self.need_equal(at, what, found[0], other)
        return found[0]

    def infer(self, i: Instruction) -> None:
        """Find the sizes of an instruction, those of its operands being known."""
        found = self._found(i)
        if found:
            self._sizes[i] = found

    # -- the walk ----------------------------------------------------------------------------------------------------
    def _check(self, check: Check) -> None:
        c = check.at.parent
        assert c is not None
        self.checks.setdefault(c, []).append(check)

    def _found(self, i: Instruction) -> Sizes:
        own = dynamic_places(i.shape)
        if not own and i.opcode != "set-dimension-size" and not any(o in self._sizes for o in i.operands):
            return {}
        found = RULES.get(i.opcode)
        if found is None and i.op.is_elementwise and all(o.shape.rank in (0, i.shape.rank) for o in i.operands):
            found = RULES["add"]
        return self.unknown(i) if found is None else found(self, i)

    # -- calls -------------------------------------------------------------------------------------------------------
    def handed_on(self, i: Instruction, place: Place, callee: Computation, given: list[Instruction]) -> Size | None:
        """The size a callee's result has, in the caller's terms; None when that takes running it."""
        inside = self.of(callee.root).get(place)
        if inside is None:
            return self.number(callee.root.shape.at(place[0]).dims[place[1]])
        if inside.number is not None:
            return self.number(inside.number)
        if inside.op != "of" or inside.args[0].opcode != "parameter":
            return None
        parameter, (index, d) = inside.args
        outside = given[parameter.number]
        found = self.of(outside).get((index, d))
        return self.number(outside.shape.at(index).dims[d]) if found is None else found

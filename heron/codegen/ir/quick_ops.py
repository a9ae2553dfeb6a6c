"""xDSL's functions that every op, value and use goes through, with less around them.

A compile makes some thousand ops, and half of its time with them was spent in views of operands, in identity written in
Python and in checks of what cannot be. Importing this puts the functions here in the place of xDSL's, which they equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, Use, core
from xdsl.ir.core import SSAValues

_new, _item = object.__new__, tuple.__getitem__
_tuple: Any = tuple.__new__
_post_init = Operation.__post_init__
_attach, _append, _insert_before = Block._attach_op, Block.add_op, Block.insert_op_before
_erase_value = SSAValue.erase
_NOWHERE = core._unknown_loc()


#: the functions that end the making of an op of a defined class
settled: set[Callable[..., None]] = set()


def without_defaults(op: Operation) -> None:
    """The rest of making an op of a class whose properties and attributes have no defaults."""
    Operation.__post_init__(op)  # xDSL's implicit builder puts itself there for a while


settled.add(without_defaults)


def with_defaults(properties: Mapping[str, Attribute], attributes: Mapping[str, Attribute]) -> Callable[..., None]:
    """The rest of making an op of a class whose properties and attributes have these defaults."""

    def settle(op: Operation) -> None:
        for name, value in properties.items():
            op.properties.setdefault(name, value)
        for name, value in attributes.items():
            op.attributes.setdefault(name, value)
        Operation.__post_init__(op)

    settled.add(settle)
    return settle


def _take(op: Operation, operands: Sequence[SSAValue]) -> None:
    """Have an op without operands use these."""
    op._operands = given = _tuple(SSAValues, operands)
    uses: list[Use] = []
    for value in given:
        use: Any = _new(Use)
        use._operation, use._index = op, len(uses)
        first = value.first_use
        if first is not None:
            use._next_use = first
            first._prev_use = use
        value.first_use = use
        uses.append(use)
    op._operand_uses = tuple(uses)


def _add(value: SSAValue, use: Use) -> None:
    use._next_use = first = value.first_use
    use._prev_use = None
    if first is not None:
        first._prev_use = use
    value.first_use = use


def _init(
    self: Operation,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},  # noqa: B006  it is copied
    attributes: Mapping[str, Attribute] = {},  # noqa: B006
    location: Any = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> None:
    """`Operation.__init__`, which takes these by name alone."""
    if operands:
        _take(self, operands)
    if result_types:
        made: list[Any] = []
        for type_ in result_types:
            value: Any = _new(OpResult)
            value._type, value.op, value.index = type_, self, len(made)
            made.append(value)
        self.results = _tuple(SSAValues, made)
    self.properties = {**properties}
    self.attributes = {**attributes} if attributes else {}
    self.location = _NOWHERE if location is None else location
    if successors:
        self.successors = list(successors)
    for region in regions:
        self.add_region(region)
    if type(self).__post_init__ is not without_defaults or Operation.__post_init__ is not _post_init:
        self.__post_init__()


def _create(
    cls: type[Operation],
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},  # noqa: B006
    attributes: Mapping[str, Attribute] = {},  # noqa: B006
    location: Any = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> Operation:
    """`Operation.create`."""
    op = _new(cls)
    _init(op, operands, result_types, properties, attributes, location, successors, regions)
    return op


def _set_operands(self: Operation, new: Sequence[SSAValue]) -> None:
    new = tuple(new)  # it may be a view of what goes
    for value, use in zip(self._operands, self._operand_uses, strict=False):
        value.remove_use(use)
    _take(self, new)


def _value_at(self: SSAValues, at: Any) -> Any:
    """`SSAValues.__getitem__`."""
    found = _item(self, at)
    return SSAValues(found) if type(found) is tuple else found


def _put_at(self: SSAValues, at: int, value: SSAValue) -> None:
    """`OpOperands.__setitem__`, of the operands that an op has now; a use of one of them tells the op."""
    use = self[at].first_use
    while use is not None:
        op = use._operation
        if op._operands is self and use is op._operand_uses[at]:
            self[at].remove_use(use)
            _add(value, use)
            operands = list(self)
            operands[at] = value
            op._operands = _tuple(SSAValues, operands)
            return
        use = use._next_use
    raise ValueError("no op has these operands any more")


def _replace_all_uses_with(self: SSAValue, value: SSAValue) -> None:
    """`SSAValue.replace_all_uses_with`."""
    if value is self:
        return
    use = self.first_use
    while use is not None:
        following = use._next_use
        operands = list(use._operation._operands)
        operands[use._index] = value
        use._operation._operands = SSAValues(operands)
        _add(value, use)
        use = following
    self.first_use = None
    if value.name_hint is None and self.name_hint is not None:
        value.name_hint = self.name_hint


def _erase(self: SSAValue, safe_erase: bool = True) -> None:
    """`SSAValue.erase`: there is nothing to replace where nothing uses it."""
    if self.first_use is not None:
        _erase_value(self, safe_erase)


def _attach_op(self: Block, operation: Operation) -> None:
    """`Block._attach_op`: an op without regions is around no block."""
    if operation.parent is not None or operation.regions:
        _attach(self, operation)
    operation.parent = self


def _add_op(self: Block, operation: Operation) -> None:
    """`Block.add_op`: it is linked to the last one without a look at what is behind that."""
    last = self._last_op
    if last is None:
        _append(self, operation)
        return
    _attach_op(self, operation)
    operation._prev_op, operation._next_op = last, None
    last._next_op = self._last_op = operation


def _insert_op_before(self: Block, new_op: Operation, existing_op: Operation) -> None:
    """`Block.insert_op_before`."""
    before = existing_op._prev_op
    if before is None or existing_op.parent is not self:
        _insert_before(self, new_op, existing_op)
        return
    _attach_op(self, new_op)
    new_op._prev_op, new_op._next_op = before, existing_op
    before._next_op = existing_op._prev_op = new_op


def _install() -> None:
    puts: Any = Operation
    puts.__init__, puts.create = _init, classmethod(_create)
    puts.operands = property(attrgetter("_operands"), _set_operands)  # xDSL makes a view each time
    puts.next_op, puts.prev_op = property(attrgetter("_next_op")), property(attrgetter("_prev_op"))
    puts = SSAValues
    puts.__getitem__, puts.__setitem__ = _value_at, _put_at
    puts = SSAValue
    puts.type = property(attrgetter("_type"))
    puts.replace_all_uses_with, puts.erase = _replace_all_uses_with, _erase
    puts = Block
    puts._attach_op, puts.add_op, puts.insert_op_before = _attach_op, _add_op, _insert_op_before
    for kind in (SSAValue, Use, core._IRNode):  # they are themselves alone, which xDSL tells in Python
        puts = kind
        puts.__hash__, puts.__eq__ = object.__hash__, object.__eq__


_install()

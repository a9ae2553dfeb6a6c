"""xDSL's functions that every op, value and use goes through, with less around them.

A compile makes some thousand ops, and half of its time with them was spent in views of operands, in identity written in
Python and in checks of what cannot be. Importing this puts the functions here in the place of xDSL's, which they equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, Use, core
from xdsl.ir.core import SSAValues

_new, _item = object.__new__, tuple.__getitem__
_post_init = Operation.__post_init__
_attach = Block._attach_op
_erase_value = SSAValue.erase


def without_defaults(op: Operation) -> None:
    """The rest of making an op of a class whose properties and attributes have no defaults."""
    Operation.__post_init__(op)  # xDSL's implicit builder puts itself there for a while


def _take(op: Operation, operands: Sequence[SSAValue]) -> None:
    """Have an op without operands use these."""
    op._operands = given = SSAValues(operands)
    uses: list[Use] = []
    for n, value in enumerate(given):
        use: Any = _new(Use)
        use._operation, use._index = op, n
        _add(value, use)
        uses.append(use)
    op._operand_uses = tuple(uses)


def _add(value: SSAValue, use: Use) -> None:
    use._next_use = first = value.first_use
    use._prev_use = None
    if first is not None:
        first._prev_use = use
    value.first_use = use


def _result(op: Operation, index: int, type_: Attribute) -> OpResult:
    value: Any = _new(OpResult)
    value._type, value.op, value.index = type_, op, index
    return value


def _init(
    self: Operation,
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},  # noqa: B006  it is copied
    attributes: Mapping[str, Attribute] = {},  # noqa: B006
    location: Any = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> None:
    """`Operation.__init__`."""
    if operands:
        _take(self, operands)
    if result_types:
        self.results = SSAValues([_result(self, n, type_) for n, type_ in enumerate(result_types)])
    self.properties, self.attributes = dict(properties), dict(attributes)
    self.location = core._unknown_loc() if location is None else location
    if successors:
        self.successors = list(successors)
    for region in regions:
        self.add_region(region)
    if type(self).__post_init__ is not without_defaults or Operation.__post_init__ is not _post_init:
        self.__post_init__()


def _create(cls: type[Operation], **parts: Any) -> Operation:
    """`Operation.create`."""
    op = cls.__new__(cls)
    _init(op, **parts)
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


def _install() -> None:
    puts: Any = Operation
    puts.__init__, puts.create = _init, classmethod(_create)
    puts.operands = property(Operation.operands.fget, _set_operands)
    puts = SSAValues
    puts.__getitem__ = _value_at
    puts = SSAValue
    puts.replace_all_uses_with, puts.erase = _replace_all_uses_with, _erase
    puts = Block
    puts._attach_op = _attach_op
    for kind in (SSAValue, Use, core._IRNode):  # they are themselves alone, which xDSL tells in Python
        puts = kind
        puts.__hash__, puts.__eq__ = object.__hash__, object.__eq__


_install()

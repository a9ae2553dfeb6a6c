"""The declaration of an op, made once.

A declaration names the operands and attributes, gives the shape rule and the NumPy meaning. Parser, printer, verifier,
builder, evaluator, fuzzer and docs all read it::

    @op("clamp")
    class Clamp(Op):
        operands = ("min", "operand", "max")
        traits = {Trait.ELEMENTWISE}

        def shape(self, i, lo, x, hi): ...          # shapes in, shape out; raises HeronError
        def evaluate(self, ev, i, lo, x, hi): ...   # arrays in, array out: the definition of what the op means
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from heron.errors import HeronError
from heron.hlo.ir.attributes import Attr, AttrKind, fits
from heron.hlo.ir.providers import provided

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.shape import Shape
    from heron.hlo.ir.types import ElementType


class Trait(enum.Enum):
    """Facts about an op, declared with it. `heron.hlo.facts` has the questions that passes ask."""

    __hash__ = object.__hash__  # members are single objects; an enum's own hash is Python code

    # arithmetic
    ELEMENTWISE = "each output element depends on the operands' elements at the same index"
    COMMUTATIVE = "the first two operands may be swapped"
    ASSOCIATIVE = "exactly associative on integers"
    IDEMPOTENT = "of two equal operands the result is that operand"
    EXTREMUM = "the result is the larger or the smaller operand"
    BITWISE = "each bit of the result depends on the operands' bits at the same place"
    ADDS = "the first operand plus or minus the second"
    SCALES = "the first operand times or divided by the second"
    CONVERTS = "the operand's value or bits, in another type or precision"
    MONOTONE = "on real numbers, a larger operand never gives a smaller result"
    TRANSCENDENTAL = "rounded from a function that has no exact result"
    CHANGES_TYPE = "elementwise, and the result may have another element type than the operands"
    # movement
    VIEW = "the operand's bytes in the same order under another shape"
    REINDEXES = "each output element is an element of the operand, at an index known from the attributes"
    PERMUTES = "reindexes, and each element of the operand is one output element, in the order of some dimensions"
    MOVES_ELEMENTS = "computes nothing: output elements are elements of the operands, or indices"
    ANY_ORDER = "works the same in any order of dimensions in memory, one order for operands and result"
    GENERATED = "an element follows from its index and at most one element: cheaper to compute again than to read"
    INDIRECT = "reads or writes at indices that another operand holds, one for each part"
    READS_PART = "reads only some elements of the first operand"
    IN_PLACE = "an output element may be written over an operand's element at the same index, as elementwise ops do"
    UPDATES_OPERAND = "the first operand (of a scatter: each one) with some elements replaced; can be done in place"
    # work
    APPLIES = "applies a computation of scalars to elements"
    SHAPES_KERNEL = "a kernel is shaped after it: a loop that computes each element by itself is no part of it"
    OVER_OPERAND = "the work follows the elements of an operand, not those of the result"
    PRODUCT = "sums products of the operands' elements"
    REDUCES = "combines elements by its computation, starting from its last operands"
    CONTRACTS = "combines all elements along some dimensions, which the result no longer has"
    ONE_BY_ONE = "compares or updates one element after the other: vectors of a CPU do not help"
    LIBRARY = "computed by a library or a routine of its own, not element by element"
    SIZES = "reads or sets sizes that are known at run time"
    # structure
    GIVEN = "a value that is there when the computation starts"
    TUPLE = "makes a tuple or takes one element of it"
    FORWARDS = "the value of the first operand, in the same memory"
    CALL = "the value of its computation on the operands"
    FREE = "takes no time"
    CONTROL_FLOW = "runs called computations as control flow"
    # effects
    SIDE_EFFECT = "must not be removed, duplicated or reordered with others of its kind"
    RANDOM = "same operands may give other values"
    COLLECTIVE = "talks to other devices"
    EQUALIZES = "talks to other devices, and gives all devices of a group the same"
    MOVES_BETWEEN = "hands elements of one device on to others as they are"
    DEVICE_ID = "the number of the device that runs the program"
    CHANNEL = "one end of a transfer to another device or the host"
    HOST = "exchanges values with the host"
    ASYNC = "starts, continues or ends a computation that runs beside others"


def _no_shape_rule(op: Op, i: Instruction, *operands: Shape) -> NoReturn:
    raise NotImplementedError(op.name)


def _no_meaning(op: Op, ev: Evaluation, i: Instruction, *operands: Any) -> NoReturn:
    raise HeronError("EVAL001", f"the evaluator does not know '{op.name}'", where=str(i))


class Op:
    """Base of all declarations; one instance per op, found in `REGISTRY`."""

    name: ClassVar[str] = ""
    #: operand names in order; a last name ending in ``*`` takes any number
    operands: ClassVar[tuple[str, ...]] = ()
    #: attributes in the order they print
    attributes: ClassVar[dict[str, Attr]] = {}
    traits: ClassVar[frozenset[Trait] | set[Trait]] = frozenset()
    #: work for one output element, in flops of a machine with multiply and add
    flops: ClassVar[float] = 1
    #: the same of floats, where it is other work; 0: as ``flops`` says
    float_flops: ClassVar[float] = 0
    #: of a division of integers, the same by a value and by a number: of up to 32 bits, of 64; vectors have no such
    #: instruction, but a product does for a number
    integer_flops: ClassVar[tuple[tuple[float, float], ...]] = ()
    #: LLVM instructions for one output element, ahead of the vectoriser
    code: ClassVar[int] = 1
    #: more of them for each operand
    code_per_operand: ClassVar[int] = 0
    #: a GPU's instructions for one output element where an assembler writes out one of LLVM's; 0: as ``code`` says
    gpu_code: ClassVar[int] = 0
    #: of a function of pairs of f32, and of pairs of f64, a GPU's instructions for one output element, by the machine
    #: code of a kernel of it alone; 0: as many times ``code`` as for any other op
    complex_code: ClassVar[tuple[int, int]] = (0, 0)
    #: of an op that begins work, the op that waits for its end
    done: ClassVar[str] = ""
    #: of such an op, whether its value is (operands, results)
    holds_operands: ClassVar[bool] = False
    #: groups of operands, names apart by a space, in which it is linear: where all of a group are sums and the other
    #: operands stay, the value is the sum of the values for the summands. With `to_apply`: only if that adds
    linear: ClassVar[tuple[str, ...]] = ()
    #: page or section that defines the op
    source: ClassVar[str] = "https://openxla.org/xla/operation_semantics"

    # filled by @op
    #: the place of each single operand
    places: dict[str, int] = {}
    min_operands: int = 0
    max_operands: int | None = 0
    is_elementwise: bool = False
    has_side_effect: bool = False
    #: whether it has attributes that print even by default
    shows: bool = False
    #: attributes that name computations
    calling: tuple[str, ...] = ()

    #: ``shape(i, *operand_shapes)``: the result shape, from operand shapes and `i`'s attributes. Ops whose shape is
    #: part of the program (broadcast, reshape, constant…) check and return the stated one.
    shape: Callable[..., Shape] = _no_shape_rule
    #: ``verify(i)``: rejects what the shape does not depend on, so that a text may hold it and a verified module not
    verify: Callable[[Instruction], None] | None = None
    #: ``evaluate(ev, i, *operand_values)``: the value, by NumPy: arrays (tuples as Python tuples) in and out.
    evaluate: Callable[..., Any] = _no_meaning

    def identity(self, t: ElementType) -> Any:
        """The value e with ``op(e, x) == x`` for every x of type `t`; None when there is none."""
        return None

    def __repr__(self) -> str:
        return f"<op {self.name}>"


REGISTRY: dict[str, Op] = {}
_O = TypeVar("_O", bound=type[Op])


def op(name: str):
    """Class decorator: declare an op under its HLO opcode."""

    def register(cls: _O) -> _O:
        assert name not in REGISTRY, name
        cls.name = name
        variadic = bool(cls.operands) and cls.operands[-1].endswith("*")
        optional = sum(o.endswith("?") for o in cls.operands)
        cls.max_operands = None if variadic else len(cls.operands)
        cls.min_operands = len(cls.operands) - variadic - optional
        cls.places = {o.rstrip("?"): n for n, o in enumerate(cls.operands) if not o.endswith("*")}
        cls.traits = frozenset(cls.traits)
        cls.is_elementwise = Trait.ELEMENTWISE in cls.traits
        cls.has_side_effect = Trait.SIDE_EFFECT in cls.traits
        kinds = (AttrKind.COMPUTATION, AttrKind.COMPUTATIONS)
        cls.calling = tuple([n for n, a in cls.attributes.items() if a.kind in kinds])
        cls.shows = any(a.shown for a in cls.attributes.values())
        cls.shape = _diagnosed(cls.shape)
        REGISTRY[name] = cls()  # type: ignore[assignment]
        return cls

    return register


def _diagnosed(rule: Callable[..., Shape]) -> Callable[..., Shape]:
    """A shape rule that blames attributes of the wrong Python type, instead of stumbling over them.

    Rules read attributes without checking their types first: that would cost time for each instruction made.
    """

    @functools.wraps(rule)
    def shape(self: Op, i: Instruction, *operands: Shape) -> Shape:
        try:
            return rule(self, i, *operands)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            need_kinds(i)
            raise

    return shape


def get(name: str) -> Op:
    """The op of that opcode. Raises HLO003 for an unknown one."""
    found = REGISTRY.get(name)
    if found is None:
        found = _declared().get(name)
    if found is None:
        import difflib

        near = difflib.get_close_matches(name, REGISTRY, 1)
        hint = f"did you mean '{near[0]}'?" if near else "`heron ops` lists all"
        raise HeronError("HLO003", f"unknown op '{name}'", hint=hint)
    return found


def all_ops() -> Iterable[Op]:
    """Every declared op, by name."""
    return [op for _, op in sorted(_declared().items())]


def _declared() -> dict[str, Op]:
    """The registry after all declarations were read: they import this file, so it cannot import them."""
    provided("declarations of ops")
    return REGISTRY


def reject(i: Instruction, what: str, why: str | None = None, hint: str | None = None) -> NoReturn:
    """Raise HLO010: a shape rule is broken by `i`."""
    raise HeronError("HLO010", f"{i.opcode}: {what}", where=describe(i), why=why, hint=hint)


def describe(i: Instruction) -> str:
    """`i` as text; without its attributes while it has no shape yet, or where an attribute cannot be printed."""
    if i.shape is not None and not misfits(i):  # pyright: ignore[reportUnnecessaryComparison]
        return str(i)
    operands = ", ".join(f"{o.shape} %{o.name}" for o in i.operands)
    return f"{i.opcode}({operands})"


def misfits(i: Instruction) -> list[str]:
    """Names of attributes that have the wrong type, or that the op does not have."""
    declared = i.op.attributes
    return [n for n, value in i.attrs.items() if n not in declared or not fits(declared[n], value)]


def need_kinds(i: Instruction) -> None:
    """Rejects (HLO010) an instruction with an attribute of the wrong type, or one its op does not have."""
    for name in misfits(i):
        spec = i.op.attributes.get(name)
        if spec is None:
            reject(i, f"there is no attribute '{name}'", f"there are: {', '.join(i.op.attributes) or 'none'}")
        text = f"{i.attrs[name]!r}"[:60]
        reject(i, f"attribute '{name}' is {text}", f"it must be {spec.kind.name.lower()}: {spec.kind.value}")

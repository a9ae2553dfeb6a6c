"""Computation: a graph of instructions with parameters and a root."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from heron.errors import HeronError
from heron.hlo.ir.attributes import Callee
from heron.hlo.ir.instruction import Instruction, clock, make
from heron.hlo.ir.providers import provided
from heron.hlo.ir.shape import Shape

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module

T = TypeVar("T")


class Computation(Callee):
    """Instructions in insertion order (`instructions`), the `root`, and the `module` it belongs to, if any.

    Insertion order is the text's; after passes it need not be topological: use `post_order()`. ``version`` is another
    number after every change of an instruction.
    """

    __slots__ = ("name", "_instructions", "root", "module", "extras", "version", "_known", "_known_at", "__weakref__")

    def __init__(self, name: str) -> None:
        self.name = name
        self._instructions: dict[Instruction, None] = {}
        self.root: Instruction = None  # type: ignore[assignment]
        self.module: Module | None = None
        self.extras: dict[str, Any] = {}  # execution_thread and the like
        self.version = 0
        self._known: dict[Hashable, Any] = {}
        self._known_at: tuple[int, Instruction | None] = 0, None

    def __str__(self) -> str:
        return provided("print_computation")(self)

    def __repr__(self) -> str:
        return f"<computation {self.name}>"

    def _repr_html_(self) -> str:
        return as_html(str(self))

    def __len__(self) -> int:
        return len(self._instructions)

    def __contains__(self, i: Instruction) -> bool:
        return i in self._instructions

    # -- questions ---------------------------------------------------------------------------------------------------
    @property
    def instructions(self) -> list[Instruction]:
        """A list of the instructions, safe to hold while changing the computation."""
        return list(self._instructions)

    @property
    def parameters(self) -> list[Instruction]:
        """Parameters by number."""
        return list(self.remembered("parameters", self._parameters))

    def _parameters(self) -> list[Instruction]:
        found = [i for i in self._instructions if i.opcode == "parameter"]
        found.sort(key=lambda i: i.attrs["number"])
        return found

    @property
    def is_entry(self) -> bool:
        return self.module is not None and self.module.entry is self

    def post_order(self) -> list[Instruction]:
        """All instructions, operands and control predecessors first; otherwise in insertion order.

        Raises HLO020 when there is a cycle.
        """
        return list(self.remembered("post order", self._post_order))

    def _post_order(self) -> list[Instruction]:
        done: set[Instruction] = set()
        order: list[Instruction] = []
        for start in self._instructions:
            if start in done:
                continue
            if not start.control_predecessors and done.issuperset(start.operands):  # as in most orders of insertion
                done.add(start)
                order.append(start)
                continue
            stack = [start]
            active: set[Instruction] = set()
            while stack:
                i = stack[-1]
                if i in done:
                    stack.pop()
                    continue
                active.add(i)
                before = len(stack)
                for operand in reversed(i.operands):
                    if operand not in done:
                        stack.append(operand)
                if i.control_predecessors:
                    stack.extend(p for p in i.control_predecessors if p not in done)
                if len(stack) == before:
                    stack.pop()
                    done.add(i)
                    order.append(i)
                    continue
                for waiting in stack[before:]:
                    if waiting in active:
                        raise HeronError(
                            "HLO020", f"cycle through '{waiting.name}' in '{self.name}'", where=str(waiting)
                        )
        return order

    def remembered(self, key: Hashable, find: Callable[[], T]) -> T:
        """`find()`, which is called again only when the computation has changed since. `key` names the question."""
        now = self.version, self.root
        if self._known_at != now:
            self._known, self._known_at = {}, now
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]

    # -- changes -----------------------------------------------------------------------------------------------------
    def attach(self, i: Instruction) -> Instruction:
        """Add an unattached instruction; its name is made unique in the module."""
        i.parent = self
        self.version = clock()
        self._instructions[i] = None
        if self.module is not None:
            i.name = self.module.unique_name(i.name or i.opcode)
        elif not i.name:
            i.name = f"{i.opcode}.{len(self._instructions)}"
        return i

    def take_over(self, other: Computation, arguments: Sequence[Instruction]) -> Instruction:
        """Move the instructions of `other`, which nothing calls any more, here; its parameters are `arguments`.

        Returns what was its root. `other` keeps its parameters alone and is to be removed.
        """
        parameters, root = other.parameters, other.root
        for p, given in zip(parameters, arguments, strict=True):
            p.replace_uses_with(given)
            root = given if p is root else root
        moved = [i for i in other.post_order() if i.opcode != "parameter"]
        other._instructions = dict.fromkeys(parameters)
        for i in moved:
            i.parent = self
        self._instructions.update(dict.fromkeys(moved))
        self.version = other.version = clock()
        return root

    def add(
        self,
        opcode: str,
        operands: Sequence[Instruction] = (),
        shape: Shape | None = None,
        name: str = "",
        like: Instruction | None = None,
        **attrs: Any,
    ) -> Instruction:
        """Create and attach. ``like`` hands on the metadata of the instruction this one stands for."""
        i = make(opcode, operands, shape, name, **attrs)
        if like is not None:
            i.metadata = like.metadata
            i.name = i.name or f"{like.name.rpartition('.')[0] or like.name}"
        return self.attach(i)

    def add_parameter(self, number: int, shape: Shape, name: str = "") -> Instruction:
        return self.add("parameter", (), shape, name or f"param_{number}", number=number)

    def remove(self, i: Instruction) -> None:
        """Take an unused instruction out. Raises PASS010 when it is still needed."""
        if i.users or i is self.root:
            raise HeronError("PASS010", f"'{i.name}' is still in use and cannot be removed")
        i.drop_control_edges()
        i.set_operands(())
        del self._instructions[i]
        self.version = clock()
        i.parent = None

    def remove_dead_from(self, i: Instruction) -> None:
        """Remove `i` and whatever only it kept alive (parameters and side effects stay)."""
        work = [i]
        while work:
            dead = work.pop()
            if dead.parent is not self or dead.users or dead is self.root:
                continue
            if dead.opcode == "parameter" or dead.has_side_effect:
                continue
            operands = list(dead.operands)
            self.remove(dead)
            work.extend(operands)

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Let `new` (attached here already) take over all uses of `old`, then drop what died."""
        if new.metadata is None:
            new.metadata = old.metadata
        if "sharding" in old.extras and "sharding" not in new.extras:
            new.extras["sharding"] = old.extras["sharding"]
        if "frontend_attributes" in old.extras and not new.users and "frontend_attributes" not in new.extras:
            new.extras["frontend_attributes"] = old.extras["frontend_attributes"]
        old.replace_uses_with(new)
        self.remove_dead_from(old)

    def replace_with(
        self,
        old: Instruction,
        opcode: str,
        operands: Sequence[Instruction] = (),
        shape: Shape | None = None,
        **attrs: Any,
    ) -> Instruction:
        """Replace `old` by a fresh instruction and return that."""
        new = self.add(opcode, operands, shape, like=old, **attrs)
        self.replace(old, new)
        return new

    def reorder(self, order: Iterable[Instruction]) -> None:
        """Make `order` (a permutation of the instructions) the insertion order."""
        self._instructions = dict.fromkeys(order)

    def clone(self, name: str | None = None, calls: dict[Computation, Computation] | None = None) -> Computation:
        """A copy outside any module; called computations are shared unless mapped by ``calls``."""
        copy = Computation(name or self.name)
        copy.extras = dict(self.extras)
        clones: dict[Instruction, Instruction] = {}
        for i in self.post_order():
            clones[i] = new = i.clone([clones[o] for o in i.operands])
            if calls:
                remap_calls(new, calls)
            new.parent = copy
            for before in i.control_predecessors:
                new.add_control_predecessor(clones[before])
        copy._instructions = dict.fromkeys(clones[i] for i in self._instructions)
        copy.root = clones[self.root]
        return copy


def remap_calls(i: Instruction, calls: dict[Computation, Computation]) -> None:
    """Make `i` call the computations `calls` maps its present ones to."""
    for name, value in i.attrs.items():
        if isinstance(value, Computation):
            i.attrs[name] = calls.get(value, value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Computation):
            callees = cast("tuple[Computation, ...]", value)
            i.attrs[name] = tuple(calls.get(c, c) for c in callees)


def as_html(text: str, lines: int = 200) -> str:
    """HLO text for a notebook, its beginning at most."""
    import html

    shown = text.splitlines()
    if len(shown) > lines:
        shown = [*shown[:lines], f"… {len(shown) - lines} more lines"]
    return f"<pre>{html.escape(chr(10).join(shown))}</pre>"

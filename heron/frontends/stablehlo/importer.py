"""Importer: a `Program` as a `Module`: functions as computations, `main` as the entry, attributes as the header."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

import heron.frontends.stablehlo.lower  # noqa: F401  (fills the table of rules)
import heron.hlo.ops  # noqa: F401  (fills the registry)
from heron.errors import HeronError
from heron.frontends.arguments import Given
from heron.frontends.stablehlo import sizes
from heron.frontends.stablehlo.block import Block
from heron.frontends.stablehlo.carried import extras, gspmd
from heron.frontends.stablehlo.header import meshes_text, set_header
from heron.frontends.stablehlo.locations import Locations
from heron.frontends.stablehlo.lower.sharding import constrained
from heron.frontends.stablehlo.reader import read
from heron.frontends.stablehlo.sizes import Folding, call_key, fits, integers, polymorphic
from heron.frontends.stablehlo.syntax import Argument, Function, Operation, Program, as_text, plain
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import UNBOUNDED, Shape
from heron.hlo.ir.types import ElementType
from heron.hlo.sharding import Mesh
from heron.hlo.sharding.shardy import read_meshes

#: calls inside calls, of functions whose sizes depend on the call
_MAX_CALLS = 40
#: functions made for the kinds of their calls
_MAX_KINDS = 10_000


def parse(
    text: str,
    filename: str = "<text>",
    *,
    verify: bool = False,
    arguments: Sequence[Given] = (),
    elsewhere: Sequence[np.ndarray] = (),
) -> Module:
    """The module a StableHLO text describes.

    Args:
        text: MLIR text of the func, stablehlo, chlo and sdy dialects, as JAX and the StableHLO tools print it.
        filename: the name of the text in errors.
        verify: also run the verifier.
        arguments: shapes of the arguments, when the text leaves some of their sizes open (``?``). An array in place of
            a shape is that argument's value, and sizes may depend on it.
        elsewhere: the values the text leaves out: ``constant {heron.elsewhere = 0} dense_resource<__elided__>``.

    Raises:
        HeronError: SHLO0xx for malformed or unsupported programs, HLO0xx from shape rules, HLO1xx from the verifier.
    """
    return imported(read(text, filename, elsewhere), filename, verify=verify, arguments=arguments)


def imported(program: Program, filename: str, *, verify: bool = False, arguments: Sequence[Given] = ()) -> Module:
    """The module of a `Program` that has been read; otherwise as `parse`."""
    module = Importer(program, arguments).module()
    module.filename = filename
    if verify:
        from heron.hlo.verifier import verify as check

        check(module)
    return module


class Importer:
    """One import: the module so far, and the computation of each function."""

    def __init__(self, program: Program, arguments: Sequence[Given] = ()) -> None:
        self.program, self.arguments = program, arguments
        self.result = Module(plain(program.name))
        self.locations = Locations(program.source, program.aliases)
        #: the program says that it is for one device
        self.is_single = program.attrs.get("mhlo.num_partitions") == 1
        self.is_quantized = "!quant." in program.source.text
        self._functions: dict[str, Computation] = {}
        self._polymorphic = polymorphic(program)
        self._kinds: dict[object, Computation] = {}
        self._depth = 0
        self._reducers: dict[tuple[str, ElementType], Computation] = {}

    def module(self) -> Module:
        """The whole module. Raises SHLO008 if it has no entry or if functions call each other in a circle."""
        main = self._main()
        shapes = self._given(main)
        for function in self._order(main):
            if function.name not in self._polymorphic:
                self._functions[function.name] = self._function(function)
        if main.name in self._polymorphic:
            known = [sizes.value(a) for a in self.arguments] or [None] * len(shapes)
            self._functions[main.name] = self._function(main, shapes, known)
        self.result.entry = self._functions[main.name]
        self.result.remove_unused_computations()
        self.result.cleanup()  # so that its text reads back as the same module
        self._name_parameters(main)
        set_header(self.result, self.program, main)
        return self.result

    def new_computation(self, name: str) -> Computation:
        return self.result.add_computation(Computation(name))

    def called(self, name: str, op: Operation, operands: Sequence[Instruction] | None = None) -> Computation:
        """The computation of a function, for these operands where its sizes depend on them."""
        found = self._functions.get(name)
        if found is not None:
            return found
        if name not in self._polymorphic or name not in self.program.functions:
            op.fail("SHLO008", f"there is no function '@{name[:40]}'")
        function = self.program.functions[name]
        if operands is None:
            stated = [a.type for a in function.arguments]
            return self._kind(function, op, name, stated, [None] * len(stated))
        key = name, call_key(operands)
        return self._kind(function, op, key, [o.shape for o in operands], [integers(o) for o in operands])

    def _kind(
        self,
        function: Function,
        op: Operation,
        key: object,
        shapes: Sequence[Shape],
        known: Sequence[np.ndarray | None],
    ) -> Computation:
        """A function for one kind of call."""
        found = self._kinds.get(key)
        if found is not None:
            return found
        if self._depth >= _MAX_CALLS or len(self._kinds) >= _MAX_KINDS:
            why = f"the limits are {_MAX_CALLS} calls inside each other and {_MAX_KINDS} kinds of calls"
            op.fail(
                "SHLO007", f"too many calls of functions such as '@{function.name}', imported anew for each", why=why
            )
        stated = [a.type for a in function.arguments]
        if len(stated) != len(shapes) or not all(map(fits, shapes, stated)):
            why = f"they are ({', '.join(str(s.bare) for s in shapes)}), not ({', '.join(str(s.bare) for s in stated)})"
            op.fail("SHLO004", f"the operands are not what '@{function.name}' takes", why=why)
        self._depth += 1
        found = self._kinds[key] = self._function(function, shapes, known)
        self._depth -= 1
        return found

    def reducer(self, opcode: str, element_type: ElementType) -> Computation:
        """A computation of two scalars that applies a binary op, the same one when asked again."""
        found = self._reducers.get((opcode, element_type))
        if found is None:
            found = self.new_computation(f"{opcode}_{element_type}")
            operands = [found.add_parameter(n, shapes.scalar(element_type)) for n in range(2)]
            found.root = found.add(opcode, operands)
            self._reducers[opcode, element_type] = found
        return found

    # -- functions ---------------------------------------------------------------------------------------------------
    def _main(self) -> Function:
        functions = self.program.functions
        found = functions.get("main")
        if found is None:
            public = [f for f in functions.values() if f.public]
            found = public[0] if len(public) == 1 else None
        if found is None:
            where = self.program.source.span(0)
            names = ", ".join(f"@{n}" for n in list(functions)[:5]) or "no function at all"
            raise HeronError("SHLO008", "the module has no function '@main'", where=where, why=f"it has {names}")
        return found

    def _order(self, main: Function) -> list[Function]:
        """Functions `main` needs, callees first."""
        order: list[Function] = []
        state: dict[str, bool] = {main.name: False}  # name -> finished
        stack = [(main, iter(main.calls.items()))]
        while stack:
            function, rest = stack[-1]
            name, at = next(rest, (None, 0))
            if name is None:
                stack.pop()
                order.append(function)
                state[function.name] = True
            elif name not in self.program.functions:
                self._no_function(name, at)
            elif name not in state:
                state[name] = False
                callee = self.program.functions[name]
                stack.append((callee, iter(callee.calls.items())))
            elif not state[name]:
                chain = " -> ".join(f"@{f.name}" for f, _ in stack[-4:])
                why = f"{chain} -> @{name}"
                self.program.source.fail("SHLO008", "functions call each other in a cycle", at, why=why)
        return order

    def _no_function(self, name: str, at: int) -> None:
        import difflib

        near = difflib.get_close_matches(name, self.program.functions, 1)
        hint = f"did you mean '@{near[0]}'?" if near else None
        self.program.source.fail("SHLO008", f"there is no function '@{name[:40]}'", at, hint=hint)

    def _given(self, main: Function) -> list[Shape]:
        """The shapes of the entry's arguments. Raises SHLO011 (sizes are open), SHLO012 (not the program's)."""
        stated = [a.type for a in main.arguments]
        if not self.arguments:
            for n, shape in enumerate(stated):
                if shape.is_unbounded:
                    self._open(main, n, shape)
            return stated
        found = [sizes.shape(a, s.element_type) for a, s in zip(self.arguments, stated, strict=False)]
        takes = f"'@{main.name}' takes ({', '.join(str(s.bare) for s in stated)})"
        if len(self.arguments) != len(stated):
            self.program.source.fail("SHLO012", f"{len(self.arguments)} arguments given", main.at, why=takes)
        for n, (shape, wanted) in enumerate(zip(found, stated, strict=True)):
            if not (fits(shape, wanted) or wanted.fits(shape.dims)) or shape.element_type is not wanted.element_type:
                what = f"argument {n} is {shape.bare}, not {wanted.bare}"
                self.program.source.fail("SHLO012", what, main.at, why=takes)
        return [s if w.is_unbounded else w for s, w in zip(found, stated, strict=True)]

    def _open(self, main: Function, n: int, shape: Shape) -> None:
        """Raise SHLO011: the shape of argument `n` must be given."""
        d = shape.dims.index(UNBOUNDED) if shape.is_array else 0
        self.program.source.fail(
            "SHLO011",
            f"dimension {d} of argument {n} of '@{main.name}' is not known: {shape.bare}",
            main.at,
            why="sizes must be known when a program is compiled, or bounded",
            hint="say it: 'model.mlir(f32[2,3])' or heron.load(text, arguments=…), or call heron.compile(text)",
        )

    def _function(
        self, function: Function, shapes: Sequence[Shape] = (), known: Sequence[np.ndarray | None] | None = None
    ) -> Computation:
        """A function's computation. ``shapes``, ``known``: of the operands, where sizes depend on the call."""
        folding = None if known is None else Folding()
        block = Block(self, self.new_computation(plain(function.name)), folding=folding)
        source = self.program.source
        for n, argument in enumerate(function.arguments):
            if argument.name in block.values:
                source.fail("SHLO003", f"'{argument.name}' is defined twice", function.at)
            name = self._argument_name(argument)
            i = block.values[argument.name] = block.parameter(n, shapes[n] if shapes else argument.type, name)
            if argument.attrs:
                i.extras.update(extras(argument.attrs))
            if known is not None and (value := known[n]) is not None:
                block.values[argument.name] = block.constant(("known", value.tobytes()), i.shape, lambda v=value: v)
        assert function.body is not None
        results = block.run(function.body, function.at)
        stated = [shape.bare for shape, _ in function.results]
        if len(results) != len(stated) or not all(fits(i.shape, s) for i, s in zip(results, stated, strict=True)):
            gives = ", ".join(str(i.shape.bare) for i in results)
            why = f"it returns ({gives}), the text says ({', '.join(map(str, stated))})"
            source.fail("SHLO004", f"the results of '@{function.name}' do not fit", function.at, why=why)
        return block.finish(self._root(block, results, function))

    def _argument_name(self, argument: Argument) -> str:
        return self.locations.origin(argument.place)[1] or plain(argument.name)

    def _name_parameters(self, main: Function) -> None:
        """Give the program's parameters the names of their arguments, where parts of functions imported before have
        them: users ask for them."""
        entry = self.result.entry
        wanted = zip(entry.parameters, map(self._argument_name, main.arguments), strict=False)
        renamed = {name: p for p, name in wanted if p.name != name}
        for i in self.result.instructions() if renamed else ():
            p = renamed.get(i.name)
            if p is not None and i.parent is not entry:
                i.name, p.name = p.name, i.name

    @cached_property
    def meshes(self) -> dict[str, Mesh]:
        """The meshes of the program by name. Raises HLO027."""
        return read_meshes(meshes_text(self.program))

    def _root(self, block: Block, results: list[Instruction], function: Function) -> Instruction:
        """The results of a function with the shardings that it gives them."""
        if function.name == self._main().name and not self.is_single:
            results = [
                constrained(block, i, "xla.sdy.FuncResultSharding", as_text(attrs["sdy.sharding"]))
                if "sdy.sharding" in attrs
                else i
                for i, (_, attrs) in zip(results, function.results, strict=True)
            ]
        root = block.packed(results)
        shardings = [attrs.get("mhlo.sharding") for _, attrs in function.results]
        if any(shardings):
            texts = [gspmd(s) if s else "{unknown}" for s in shardings]
            if root in results:  # the sharding is the result's, not that of a parameter or a shared value
                root = block.add("copy", (root,))
            if len(texts) > 1:
                texts = [f"/*index={n}*/{s}" if n and n % 5 == 0 else s for n, s in enumerate(texts)]
                root.extras["sharding"] = "{" + ", ".join(texts) + "}"
            else:
                root.extras["sharding"] = texts[0]
        return root

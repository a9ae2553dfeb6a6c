"""Importer: a `Program` as a `Module`: functions as computations, `main` as the entry, attributes as the header."""

from __future__ import annotations

import heron.frontends.stablehlo.lower  # noqa: F401  (fills the table of rules)
import heron.hlo.ops  # noqa: F401  (fills the registry)
from heron.errors import HeronError
from heron.frontends.stablehlo.block import Block
from heron.frontends.stablehlo.carried import extras, gspmd
from heron.frontends.stablehlo.header import set_header
from heron.frontends.stablehlo.locations import Locations
from heron.frontends.stablehlo.reader import read
from heron.frontends.stablehlo.syntax import Function, Operation, Program, plain
from heron.hlo import shape as shapes
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.types import ElementType


def parse(text: str, filename: str = "<text>", *, verify: bool = False) -> Module:
    """The module a StableHLO text describes.

    Args:
        text: MLIR text of the func, stablehlo, chlo and sdy dialects, as JAX and the StableHLO tools print it.
        filename: what errors call the text.
        verify: also run the verifier.

    Raises:
        HeronError: SHLO0xx for malformed or unsupported programs, HLO0xx from shape rules, HLO1xx from the verifier.
    """
    module = Importer(read(text, filename)).module()
    module.filename = filename
    if verify:
        from heron.hlo.verifier import verify as check

        check(module)
    return module


class Importer:
    """One import: the module so far, and which function is which computation."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.result = Module(plain(program.name))
        self.locations = Locations(program.source, program.aliases)
        #: the program says that it is for one device
        self.is_single = program.attrs.get("mhlo.num_partitions") == 1
        self._functions: dict[str, Computation] = {}
        self._reducers: dict[tuple[str, ElementType], Computation] = {}

    def module(self) -> Module:
        """The whole module. Raises SHLO008 when it has no entry or functions call each other in a circle."""
        main = self._main()
        for function in self._order(main):
            computation = self._function(function)
            self._functions[function.name] = computation
        self.result.entry = self._functions[main.name]
        self.result.remove_unused_computations()
        set_header(self.result, self.program, main)
        return self.result

    def new_computation(self, name: str) -> Computation:
        return self.result.add_computation(Computation(name))

    def called(self, name: str, op: Operation) -> Computation:
        """The computation of a function."""
        found = self._functions.get(name)
        if found is None:
            op.fail("SHLO008", f"there is no function '@{name[:40]}'")
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
                self.program.source.fail("SHLO008", "functions cannot call each other in a circle", at, why=why)
        return order

    def _no_function(self, name: str, at: int) -> None:
        import difflib

        near = difflib.get_close_matches(name, self.program.functions, 1)
        hint = f"did you mean '@{near[0]}'?" if near else None
        self.program.source.fail("SHLO008", f"there is no function '@{name[:40]}'", at, hint=hint)

    def _function(self, function: Function) -> Computation:
        block = Block(self, self.new_computation(plain(function.name)))
        source = self.program.source
        for n, argument in enumerate(function.arguments):
            if argument.name in block.values:
                source.fail("SHLO003", f"'{argument.name}' is defined twice", function.at)
            name = self.locations.origin(argument.place)[1] or plain(argument.name)
            i = block.values[argument.name] = block.parameter(n, argument.type, name)
            if argument.attrs:
                i.extras.update(extras(argument.attrs))
        assert function.body is not None
        results = block.run(function.body, function.at)
        stated = [shape.bare for shape, _ in function.results]
        if [i.shape.bare for i in results] != stated:
            gives = ", ".join(str(i.shape.bare) for i in results)
            why = f"it returns ({gives}), the text says ({', '.join(map(str, stated))})"
            source.fail("SHLO004", f"the results of '@{function.name}' do not fit", function.at, why=why)
        return block.finish(self._root(block, results, function))

    def _root(self, block: Block, results: list[Instruction], function: Function) -> Instruction:
        root = block.packed(results)
        shardings = [attrs.get("mhlo.sharding") for _, attrs in function.results]
        if any(shardings):
            texts = [gspmd(s) if s else "{replicated}" for s in shardings]
            if root in results:  # the sharding is the result's, not that of a parameter or a shared value
                root = block.add("copy", (root,))
            root.extras["sharding"] = texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"
        return root

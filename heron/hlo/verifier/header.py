"""Rules of the header: entry layout, aliases, donors, prefetches, device counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.verifier.rules import Problem, rule


@rule("HLO109")
def entry_layout_fits(module: Module) -> Iterator[Problem]:
    """The entry layout has the entry computation's shapes."""
    if module.entry_layout is None:
        return
    parameters, result = module.entry_layout
    entry = module.entry
    own = entry.parameters
    if len(parameters) != len(own):
        what = f"the entry layout has {len(parameters)} parameters, '{entry.name}' has {len(own)}"
        yield Problem("HLO109", what, computation=entry)
        return
    for n, (says, p) in enumerate(zip(parameters, own, strict=True)):
        if says.bare is not p.shape.bare:
            yield Problem("HLO109", f"the entry layout says parameter {n} is {says.bare}", p)
    if result.bare is not entry.root.shape.bare:
        yield Problem("HLO109", f"the entry layout says the result is {result.bare}", entry.root)


@rule("HLO111")
def aliases_exist(module: Module) -> Iterator[Problem]:
    """Aliases name parts of the result and of parameters that are there, each at most once."""
    entry = module.entry
    outputs: set[tuple[int, ...]] = set()
    inputs: set[tuple[int, tuple[int, ...]]] = set()
    for output, number, index, _kind in module.header.get("input_output_alias", ()):
        if _part(entry.root.shape, output) is None:
            yield Problem("HLO111", f"the result has no part {_show(output)} to alias", entry.root)
        if _parameter_part(module, number, index) is None:
            yield Problem("HLO111", f"there is no parameter {number} with a part {_show(index)} to alias", entry.root)
        if output in outputs or (number, index) in inputs:
            yield Problem(
                "HLO111",
                f"output {_show(output)} or parameter {number}{_show(index)} is aliased twice",
                hint="an alias pairs one output with one parameter: leave one of the two out",
            )
        outputs.add(output)
        inputs.add((number, index))


@rule("HLO112")
def modules_are_named(module: Module) -> Iterator[Problem]:
    """The module has a name."""
    if not module.name:
        yield Problem("HLO112", "the module has no name", hint="HloModule name")


@rule("HLO114")
def aliased_parts_are_alike(module: Module) -> Iterator[Problem]:
    """Aliased parts are arrays of one size; what *must* be aliased has one shape on both sides."""
    for output, number, index, kind in module.header.get("input_output_alias", ()):
        to, source = _part(module.result_shape, output), _parameter_part(module, number, index)
        if to is None or source is None:
            continue  # HLO111
        names = f"output {_show(output)} and parameter {number}{_show(index)}"
        if not to.is_array or not source.is_array:
            yield Problem("HLO114", f"{names} are aliased, but not both arrays", why=f"{to} and {source}")
        elif kind == "must-alias" and to is not source:
            why = f"{to} and {source}"
            yield Problem("HLO114", f"{names} must be aliased, but differ in shape or layout", why=why)
        elif to.byte_size != source.byte_size:
            why = f"{to} has {to.byte_size} bytes, {source} has {source.byte_size}"
            hint = "alias an output of as many bytes, or leave the alias out"
            yield Problem("HLO114", f"{names} are aliased, but differ in size", why=why, hint=hint)


@rule("HLO115")
def donors_exist(module: Module) -> Iterator[Problem]:
    """Donated parts are arrays that are there, donated once, and not aliased as well."""
    aliased = {(number, index) for _, number, index, _ in module.header.get("input_output_alias", ())}
    donated: set[tuple[int, tuple[int, ...]]] = set()
    root = module.entry.root
    for number, index in module.header.get("buffer_donor", ()):
        part = _parameter_part(module, number, index)
        if part is None:
            yield Problem("HLO115", f"there is no parameter {number} with a part {_show(index)} to donate", root)
        elif not part.is_array:
            yield Problem("HLO115", f"parameter {number}{_show(index)} is donated, but no array", why=f"it is {part}")
        if (number, index) in donated:
            yield Problem("HLO115", f"parameter {number}{_show(index)} is donated twice")
        if (number, index) in aliased:
            hint = "an alias says already that the program may overwrite it"
            yield Problem("HLO115", f"parameter {number}{_show(index)} is donated and aliased", hint=hint)
        donated.add((number, index))


@rule("HLO116")
def prefetches_exist(module: Module) -> Iterator[Problem]:
    """Prefetches between programs name arrays among the entry's parameters, each once."""
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for number, index, _offset in module.cross_program_prefetches:
        part = _parameter_part(module, number, tuple(index))
        if part is None or not part.is_array:
            yield Problem("HLO116", f"parameter {number}{_show(tuple(index))} cannot be prefetched: there is no array")
        if (number, tuple(index)) in seen:
            yield Problem("HLO116", f"parameter {number}{_show(tuple(index))} is prefetched twice")
        seen.add((number, tuple(index)))


@rule("HLO117")
def device_counts_are_positive(module: Module) -> Iterator[Problem]:
    """A program runs on at least one replica of at least one partition."""
    for name in ("replica_count", "num_partitions"):
        count = module.header.get(name, 1)
        if count < 1:
            yield Problem("HLO117", f"{name} is {count}", why="a program runs on at least one device")


@rule("HLO118")
def spmd_shardings_fit(module: Module) -> Iterator[Problem]:
    """After partitioning, there is one recorded sharding for each parameter of the entry."""
    shardings = module.spmd_parameter_shardings
    if shardings is not None and len(shardings) != len(module.entry.parameters):
        why = f"{len(shardings)} shardings, {len(module.entry.parameters)} parameters"
        yield Problem("HLO118", "each parameter needs its sharding", computation=module.entry, why=why)


@rule("HLO168")
def dynamic_sizes_are_told(module: Module) -> Iterator[Problem]:
    """The size of a dynamic dimension is an integer scalar parameter, and the dimension exists."""
    try:
        bindings = module.dynamic_parameters
    except HeronError as error:
        yield Problem("HLO168", f"the binding of dynamic parameters cannot be read: {error.what}", why=error.why)
        return
    for dimension, size in bindings:
        try:
            bindings.check(size, dimension)
        except HeronError as error:
            yield Problem("HLO168", error.what, module.entry.root, why=error.why)


def _parameter_part(module: Module, number: int, index: tuple[int, ...]) -> Shape | None:
    shapes = module.parameter_shapes
    return _part(shapes[number], index) if 0 <= number < len(shapes) else None


def _part(shape: Shape, index: Iterable[int]) -> Shape | None:
    for n in index:
        if shape.tuple_shapes is None or not 0 <= n < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[n]
    return shape


def _show(index: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, index)) + "}"

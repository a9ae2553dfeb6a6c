"""Radix sorts: kernels of our own, one after another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from heron.analysis.fusion.radix_plan import called
from heron.analysis.fusion.sort_keys import keys_of
from heron.errors import HeronError
from heron.hlo.calls.radix_sort import arrays, comparator_of, positions
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.instruction import Instruction
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering
    from heron.codegen.kernel import Kernel


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """Clear, count, and a pass for each byte of the keys: to and fro between the copies and the results, where the last
    one ends. Raises GEN017 on a machine other than a GPU, or for a comparator without keys.
    """
    from heron.codegen.emitters import control_words
    from heron.codegen.emitters.sort import gpu_radix as hero

    comparator = comparator_of(i)
    keys, target = keys_of(comparator), lowering.target
    if keys is None or target.kind != "gpu":
        why = "the target is not a GPU" if keys is not None else "its comparator does not order by keys"
        raise HeronError("GEN017", f"no kernel computes the radix sort '{i.name}'", where=str(i), why=why)
    shapes, plan = arrays(i), called(i)
    whole = hero.RadixSort(shapes, comparator, keys, plan)
    first = replace(whole, made=positions(i))
    places = [lowering.slice(i, (n,)) for n in range(len(i.shape.tuple_shapes or ()))]
    given, control, count = tuple(lowering.slice(o) for o in i.operands), places[-1], len(shapes)
    result, spare = tuple(places[:count]), tuple(places[count:-1])

    def key(step: str, sort: hero.RadixSort) -> tuple[object, ...]:
        return ("radix sort", step, shapes, fingerprint(comparator), sort.made)

    thunks = lowering.run(
        i,
        ("clear", plan.words),
        lambda name: [control_words.emit_clear(plan.words, "sort", f"{name}_clear", target)],
        (control,),
    )
    counting = (*given, control)
    thunks += lowering.run(
        i, key("count", first), lambda name: [hero.emit_count(first, f"{name}_count", target)], counting
    )
    origin = given
    for n in range(plan.digits):
        goal = result if (plan.digits - n) % 2 else spare
        moving, sort = (*origin, *goal, control), whole if n else first

        def emit(name: str, sort: hero.RadixSort = sort) -> list[Kernel]:
            return [hero.emit_pass(sort, f"{name}_{'first' if sort.made else 'pass'}", target)]

        thunks += lowering.run(i, key("pass", sort), emit, moving)
        origin = goal
    return thunks

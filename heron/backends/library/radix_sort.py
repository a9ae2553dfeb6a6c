"""Radix sorts: kernels of our own, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.analysis.radix_plan import called
from heron.analysis.sort_keys import keys_of
from heron.errors import HeronError
from heron.hlo.fingerprint import fingerprint
from heron.hlo.instruction import Instruction
from heron.hlo.library.radix_sort import comparator_of
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def radix_sort(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """Clear, count, and a pass for each byte of the keys: to and fro between the copies and the results, where the last
    one ends. Raises GEN017 on a machine other than a GPU, or for a comparator without keys.
    """
    from heron.codegen.heroes import control_words
    from heron.codegen.heroes import sort_radix_gpu as hero

    comparator = comparator_of(i)
    keys, target = keys_of(comparator), lowering.target
    if keys is None or target.kind != "gpu":
        why = "the target is no GPU" if keys is not None else "its comparator does not order by keys"
        raise HeronError("GEN017", f"no kernel does the radix sort '{i.name}'", where=str(i), why=why)
    shapes = tuple(o.shape for o in i.operands)
    plan = called(i)
    sort = hero.RadixSort(shapes, comparator, keys, plan)
    places = [lowering.slice(i, (n,)) for n in range(len(i.shape.tuple_shapes or ()))]
    given, control, count = tuple(lowering.slice(o) for o in i.operands), places[-1], len(shapes)
    result, spare = tuple(places[:count]), tuple(places[count:-1])

    def key(step: str) -> tuple[object, ...]:
        return ("radix sort", step, shapes, fingerprint(comparator))

    thunks = lowering.run(
        i,
        ("clear", plan.words),
        lambda name: [control_words.emit_clear(plan.words, "sort", f"{name}_clear", target)],
        (control,),
    )
    counting = (*given, control)
    thunks += lowering.run(i, key("count"), lambda name: [hero.emit_count(sort, f"{name}_count", target)], counting)
    origin = given
    for n in range(plan.digits):
        goal = result if (plan.digits - n) % 2 else spare
        moving = (*origin, *goal, control)
        thunks += lowering.run(i, key("pass"), lambda name: [hero.emit_pass(sort, f"{name}_pass", target)], moving)
        origin = goal
    return thunks

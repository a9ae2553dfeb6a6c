"""Radix sorts: kernels of our own, one after another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from heron.analysis.fusion.radix_plan import called
from heron.analysis.fusion.sort_keys import keys_of
from heron.codegen.emitters import control_words
from heron.codegen.emitters.sort import gpu_radix, gpu_radix_pass
from heron.codegen.kernel import Kernel
from heron.errors import HeronError
from heron.hlo.calls.form import results_of
from heron.hlo.calls.radix_sort import arrays, comparator_of, positions
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.instruction import Instruction
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """Clear the control words, count digits, then one pass for each byte of the keys.

    Passes move elements to and fro between copies and results; the last one ends in the results. Raises GEN017 on a
    machine other than a GPU, or for a comparator without keys.
    """
    comparator = comparator_of(i)
    keys, target = keys_of(comparator), lowering.target
    if keys is None or not target.is_gpu:
        why = "the target is not a GPU" if keys is not None else "its comparator does not order by keys"
        raise HeronError("GEN017", f"no kernel computes the radix sort '{i.name}'", where=str(i), why=why)
    shapes, plan = arrays(i), called(i)
    if results_of(i)[-1].dims != (plan.words,) or plan.digits > 1 and len(results_of(i)) <= 2 * len(shapes):
        why = f"it takes {plan.words} control words and, between passes, copies of its arrays; its result is {i.shape}"
        raise HeronError("GEN017", f"the radix sort '{i.name}' lacks scratch memory", where=str(i), why=why)
    whole = gpu_radix.RadixSort(shapes, comparator, keys, plan)
    first = replace(whole, made=positions(i))
    places = [lowering.slice(i, (n,)) for n in range(len(results_of(i)))]
    operands, control, count = tuple(lowering.slice(o) for o in i.operands), places[-1], len(shapes)
    results, copies = tuple(places[:count]), tuple(places[count:-1])

    def key(step: str, sort: gpu_radix.RadixSort) -> tuple[object, ...]:
        return ("radix sort", step, shapes, fingerprint(comparator), sort.made)

    def clear(name: str) -> list[Kernel]:
        return [control_words.emit_clear(plan.words, "sort", f"{name}_clear", target)]

    def count_digits(name: str) -> list[Kernel]:
        return [gpu_radix.emit_count(first, f"{name}_count", target)]

    thunks = lowering.run(i, ("clear", plan.words), clear, (control,))
    thunks += lowering.run(i, key("count", first), count_digits, (*operands, control))
    source = operands
    for n in range(plan.digits):
        goal = results if (plan.digits - n) % 2 else copies
        moving, sort = (*source, *goal, control), whole if n else first

        def emit(name: str, sort: gpu_radix.RadixSort = sort) -> list[Kernel]:
            return [gpu_radix_pass.emit_pass(sort, f"{name}_{'first' if sort.made else 'pass'}", target)]

        thunks += lowering.run(i, key("pass", sort), emit, moving)
        source = goal
    return thunks

"""Joins as JAX's own control flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.interplay.fragment import Fragment
from tests.interplay.joins import Arrays, Function


class Traced:
    """Joins as JAX's own control flow."""

    @property
    def xp(self) -> Any:
        import jax.numpy

        return jax.numpy

    def part(self, fragment: Fragment, arrays: Arrays) -> Arrays:
        from jax import tree_util

        return [self.xp.asarray(o) for o in tree_util.tree_leaves(fragment.function(*arrays))]

    def loop(self, form: str, turns: int, body: Function, state: Arrays) -> tuple[Arrays, Arrays]:
        import jax
        from jax import lax

        count = len(state)
        if form in ("scan", "reverse"):
            last, results = lax.scan(lambda s, _: _cut(body(s), count), state, None, turns, reverse=form == "reverse")
            return last, results
        shapes = jax.eval_shape(lambda s: body(s), state)
        start = [*state, *[self.xp.zeros(s.shape, s.dtype) for s in shapes[count:]]]
        if form == "fori":
            last = lax.fori_loop(0, turns, lambda _, c: body(c[:count]), start)
        else:
            index = (np.int32(0), np.int32(turns))
            last = lax.while_loop(
                lambda c: c[0][0] < c[0][1], lambda c: ((c[0][0] + 1, c[0][1]), body(c[1][:count])), (index, start)
            )[1]
        return last[:count], last[count:]

    def branch(self, index: Any, branches: Sequence[Function], arrays: Arrays) -> Arrays:
        import jax
        from jax import lax

        shapes = [jax.eval_shape(lambda a, f=f: f(a), arrays) for f in branches]

        def full(k: int) -> Function:
            def run(given: Arrays) -> Arrays:
                own = branches[k](given)
                return [
                    o
                    for j, group in enumerate(shapes)
                    for o in (own if j == k else [self.xp.zeros(s.shape, s.dtype) for s in group])
                ]

            return run

        if len(branches) == 2:
            return lax.cond(index > 0, full(1), full(0), arrays)
        return lax.switch(index, [full(k) for k in range(len(branches))], arrays)

    def mapped(self, function: Function, arrays: Arrays) -> Arrays:
        import jax

        return jax.vmap(lambda *a: function(list(a)))(*arrays)


def _cut(values: Arrays, count: int) -> tuple[Arrays, Arrays]:
    return values[:count], values[count:]

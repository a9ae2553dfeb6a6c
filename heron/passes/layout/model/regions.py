"""The search of layout-assignment: values that lie in another order together, so that fewer bytes are moved.

It begins with everything row-major and looks at each place where bytes are moved: a transpose, an operand in another
order than its op needs. The value beyond takes the order that moves nothing there, and with it, one after the other,
all values for which that makes a difference: the readers of a value, and the other values those read. Values that would
have been better off as they were go back. If the rest moves fewer bytes than before, it stays so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from heron.passes.layout.model.orders import Order
from heron.passes.layout.model.places import Edge, Places, Value
from heron.records import dataclass

#: values that change together, at most
_LARGEST = 200


@dataclass(frozen=True, slots=True)
class Region:
    """Values in new orders, and the bytes moved around them before and after."""

    orders: dict[Value, Order]
    before: int
    after: int


def best(places: Places, orders: dict[Value, Order], edge: Edge) -> Region | None:
    """The better of two regions that mend an edge: of what its operand becomes, and of what the operand comes from."""
    given = orders.get(edge.source, edge.source.order)
    found: list[Region] = []
    if edge.result is not None:
        found += _grown(places, orders, edge.result, edge.relation.down(given))
    wanted = edge.source.order if edge.result is None else orders.get(edge.result, edge.result.order)
    found += _grown(places, orders, edge.source, edge.relation.up(wanted))
    return min(found, key=lambda r: r.after - r.before, default=None)


def _grown(places: Places, orders: dict[Value, Order], start: Value, wanted: Order | None) -> list[Region]:
    """The region in which `start` has that order; none where it cannot."""
    if wanted is None or not places.can_be(start, wanted):
        return []
    now = {**orders, start: wanted}
    new, work = {start: wanted}, deque([start])
    edges: dict[Edge, None] = {}
    while work:
        v = work.popleft()
        for edge in places.around(v):
            edges[edge] = None
            other = edge.result if edge.source is v else edge.source
            if other is None or other in new or len(new) >= _LARGEST or not edge.cost(now):
                continue
            order = edge.relation.down(now[v]) if edge.source is v else edge.relation.up(now[v])
            if order is None or order == now.get(other, other.order) or not places.can_be(other, order):
                continue
            new[other] = now[other] = order
            work.append(other)
    _peel(places, orders, now, new)
    if not new:
        return []
    return [Region(new, _bytes(edges, orders), _bytes(edges, now))]


def _peel(places: Places, orders: dict[Value, Order], now: dict[Value, Order], new: dict[Value, Order]) -> None:
    """Put back, the last first, every value that does no good where it is."""
    work = list(new)
    while work:
        v = work.pop()
        if v not in new:
            continue
        edges = places.around(v)
        cost, kept = _bytes(edges, now), now[v]
        now[v] = orders.get(v, v.order)
        if _bytes(edges, now) > cost:
            now[v] = kept
            continue
        del new[v]
        for edge in edges:
            other = edge.result if edge.source is v else edge.source
            if other is not None and other in new:
                work.append(other)


def _bytes(edges: Iterable[Edge], orders: dict[Value, Order]) -> int:
    return sum(edge.cost(orders) for edge in edges)

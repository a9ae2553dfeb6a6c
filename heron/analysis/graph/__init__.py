"""Facts about instructions as a graph: order, reachability, liveness, aliases, dataflow, calls."""

"""A planted fault: x * y becomes x * -y where y is a rsqrt under reshapes and broadcasts."""

import heron


@heron.rewrite("multiply")
def product_with_rsqrt(i, b):
    for n in (0, 1):
        y = under = i.operands[n]
        while under.opcode in ("broadcast", "reshape"):
            under = under.operands[0]
        if under.opcode == "rsqrt":
            return b.add("multiply", [i.operands[1 - n], b.add("negate", [y])])
    return None

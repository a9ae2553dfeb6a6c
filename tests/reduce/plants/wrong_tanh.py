"""A planted fault: tanh(x) becomes x."""

import heron


@heron.rewrite("tanh")
def tanh_is_its_operand(i, b):
    return i.operands[0]

"""HLO text, read and written the way XLA does.

Where the two differ, on purpose:

- ``-0`` in a floating-point constant keeps its sign; XLA's parser takes it for an integer without one.
- Read here, refused there: words of the grammar such as ``nan`` as names without ``%``, ``branch_computations`` of a
  conditional by predicate, names of element types (they get an underscore), inferred shapes of more ops, a parent
  frame 0, complex numbers without their comma.
- Refused here, read there: buffers ``b(f32[2])``, layouts that do not order the dimensions, fewer devices than tiles,
  comments inside a shape.
- An async-start whose computation gives an op its parameters in another order, or one of them twice, is spelled out;
  XLA prints the op with the operands in order, which means something else.
- An async-start that wraps one op prints its statistics once; XLA prints them twice and cannot read that back.
"""

from heron.hlo.text.options import PrintOptions
from heron.hlo.text.parser import parse
from heron.hlo.text.printer import print_computation, print_instruction, print_module

__all__ = ["PrintOptions", "parse", "print_computation", "print_instruction", "print_module"]

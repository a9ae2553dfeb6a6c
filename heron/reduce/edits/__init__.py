"""The ways to make a program smaller, one kind a file: each says what it can take away, and takes it away."""

from heron.reduce.edits.arrays import INPUTS, TRIPS
from heron.reduce.edits.bare import BARE, HEADER
from heron.reduce.edits.bodies import BODIES
from heron.reduce.edits.bypasses import BYPASSES
from heron.reduce.edits.cuts import CUTS, ROOTS
from heron.reduce.edits.inlining import INLINING
from heron.reduce.edits.kind import Kind
from heron.reduce.edits.outputs import OUTPUTS
from heron.reduce.edits.shapes import SHAPES
from heron.reduce.edits.simplifying import SIMPLIFYING
from heron.reduce.edits.windows import WINDOWS, around

#: in the order in which they are tried, over and over until none does anything: what saves most first
KINDS: tuple[Kind, ...] = (
    WINDOWS,
    OUTPUTS,
    INLINING,
    CUTS,
    BYPASSES,
    ROOTS,
    SIMPLIFYING,
    BODIES,
    TRIPS,
    BARE,
    HEADER,
    SHAPES,
    INPUTS,
)

__all__ = ["KINDS", "WINDOWS", "Kind", "around"]

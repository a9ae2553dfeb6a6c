"""Assembly formats that are read late: every one is right, and prints and parses as it did."""

from __future__ import annotations

import subprocess
import sys

from heron.codegen.ir.dialects.context import parse_kernel

COUNTS = """
from heron.codegen.ir import late_formats
made, late = [], late_formats.LateFormat.__init__
def note(self, text, op):
    made.append(self)
    late(self, text, op)
late_formats.LateFormat.__init__ = note
from heron.codegen.ir.dialects import context
read = sum(f._program is not None for f in made)
for format in made:
    format.program
print(len(made), read)
"""


def test_formats_are_read_when_they_are_needed() -> None:
    found = subprocess.run([sys.executable, "-c", COUNTS], capture_output=True, text=True, check=True)
    made, read = map(int, found.stdout.split())
    assert made > 100 and read == 0


def test_an_op_prints_and_parses_by_its_format() -> None:

    text = """builtin.module { func.func @f(%x: f32, %y: f32) -> f32 {
             %z = arith.addf %x, %y : f32
             func.return %z : f32 } }"""
    module = parse_kernel(text)
    assert "arith.addf %x, %y : f32" in str(module)

"""HLO text, read and written the way XLA does."""

from heron.hlo.text.options import PrintOptions
from heron.hlo.text.parser import parse
from heron.hlo.text.printer import print_computation, print_instruction, print_module

__all__ = ["PrintOptions", "parse", "print_computation", "print_instruction", "print_module"]

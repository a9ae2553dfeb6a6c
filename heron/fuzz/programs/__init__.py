"""The generator of programs: state and arithmetic in `program`, the other steps by family."""

from heron.fuzz.programs.program import ALL_TYPES, Program, program

__all__ = ["ALL_TYPES", "Program", "program"]

"""The generator of programs: `program` makes one, of the steps that each family has."""

from heron.fuzz.programs.program import ALL_TYPES, Program, program

__all__ = ["ALL_TYPES", "Program", "program"]

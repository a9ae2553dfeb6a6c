"""Emitters: each turns a fusion into a kernel around its most demanding instruction."""

from heron.codegen.ir import late_definitions  # noqa: F401  ahead of the first dialect

"""Conformance: what every op means, the evaluator against XLA:CPU, corner by corner. See docs/reference/conformance.md."""

"""The HLO language: types, shapes, instructions, computations, modules, text, verifier, evaluator."""

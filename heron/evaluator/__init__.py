"""The evaluator: the meaning of an HLO program, computed with NumPy, on one device or several."""

from heron.evaluator.walker import Evaluator, Value, bind, evaluate, evaluate_devices, flatten

__all__ = ["Evaluator", "Value", "bind", "evaluate", "evaluate_devices", "flatten"]

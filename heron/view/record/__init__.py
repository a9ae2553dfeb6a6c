"""The parts of a trace that are kept for questions asked later: see `recording`."""

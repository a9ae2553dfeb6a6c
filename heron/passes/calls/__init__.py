"""Ops that libraries compute: rewritten to calls of them, with as much around the op as a call takes."""

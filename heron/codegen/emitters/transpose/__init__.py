"""Loops that read an operand across memory, tiled so that every access runs along it."""

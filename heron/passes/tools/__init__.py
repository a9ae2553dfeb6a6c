"""Passes for people: undo what a compile did to compare a program elsewhere, check it, say what is in it."""

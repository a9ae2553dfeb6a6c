"""Questions about shardings: which one each value of a program has, what follows from them, and why."""

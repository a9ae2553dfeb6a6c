"""Block-level fusions: which tile of every value a program of the grid needs, how the grid is cut, what that costs."""

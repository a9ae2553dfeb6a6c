"""NumPy building blocks of the evaluator: scalar semantics, reducers over whole arrays, library calls."""

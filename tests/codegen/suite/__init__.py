"""Every fusible op, in every hero, of every type: executed on the simulated GPU and the CPU, against the evaluator."""

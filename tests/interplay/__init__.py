"""Whether features meet well: several fragments joined in one program against the same fragments one by one.

``python -m tests.interplay --count 2000`` draws programs of 2 to 6 fragments of a library of some 1,200 (`fragments`: a
few lines of JAX each, or StableHLO where JAX has no words for it), joined side by side, one feeding the next, in one
loop, scan, branch or map, with an input or an output in common, with donated inputs, and all of this nested (`joins`).
JAX lowers a program to StableHLO without running it; heron runs it on the evaluator, the CPU and the simulated GPU. The
reference is the program part by part, each part a program of its own under XLA (`references`); `judging` tells faults
from questions without a sharp answer. What differs is made small (`reducing`) and kept with its inputs and the command
that shows it again.

With ``--devices 8`` programs are for several devices: what goes into fragments and comes out of them is constrained at
random, and some maps are a `shard_map` (`spreading`). Their meaning, and so the reference, is that of one device.
"""

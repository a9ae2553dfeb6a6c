"""Programs on 8 devices of the CPU: heron and XLA:CPU in turn, in one process."""

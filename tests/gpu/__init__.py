"""What needs an NVIDIA GPU: ``pytest tests/gpu``. Skipped where there is none; ``--rehearse`` runs it on a driver that
records, with kernels by the simulator, so that the tests themselves are tested."""

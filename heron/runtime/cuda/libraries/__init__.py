"""NVIDIA's libraries as plain shared objects: `base.py` is what the CUDA runtime sees of them, one file a library."""

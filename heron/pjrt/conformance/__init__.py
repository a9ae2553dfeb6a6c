"""JAX's own tests as judge: run on heron and on JAX's CPU, told apart test by test."""

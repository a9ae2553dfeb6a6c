"""Whether what a process did before changes what a program computes."""

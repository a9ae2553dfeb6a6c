"""The partitioner: a program on global arrays becomes the program that every device runs on its parts of them."""

"""Custom calls: the configuration each one carries, read into plain data and written again."""

"""What backend_config says on custom calls of libraries, in XLA's form: read into plain data and written again."""

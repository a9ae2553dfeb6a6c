"""The functions of `PJRT_Api` that are Python, one family a file."""

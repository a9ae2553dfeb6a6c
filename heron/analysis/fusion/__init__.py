"""Questions about a fusion: its kernel, in-place computation, shared buffers, plans of sorts and scans."""

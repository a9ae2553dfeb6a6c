"""Prefix and suffix scans."""

"""Passes about layouts."""

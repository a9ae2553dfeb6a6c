"""Passes that make a module smaller or cheaper without a target in mind."""

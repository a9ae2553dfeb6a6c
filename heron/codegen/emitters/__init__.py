"""Emitters: each turns a fusion into a kernel around its most demanding instruction."""

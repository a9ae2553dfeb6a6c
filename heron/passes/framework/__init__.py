"""Shared by all passes: base class, registry, pipelines, context, checks between passes, documentation."""

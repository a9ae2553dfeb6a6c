"""Routines of host libraries as `HostThunk` calls them: frozen dataclasses, called on views of operands, then results."""

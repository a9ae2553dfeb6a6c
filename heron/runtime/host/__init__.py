"""Routines of host libraries as `HostThunk` calls them: dataclasses, called on views of operands, then results."""

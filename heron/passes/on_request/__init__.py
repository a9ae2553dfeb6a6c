"""Passes that no pipeline runs. `heron opt --passes NAME` and pipelines of users do; each says why none has it."""

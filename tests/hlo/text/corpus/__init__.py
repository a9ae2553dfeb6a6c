"""HLO texts found in a folder, such as those of an XLA checkout: read, verified, printed and run, XLA beside heron."""

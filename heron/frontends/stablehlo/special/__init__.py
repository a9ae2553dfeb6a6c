"""Special functions expanded into elementary ones, for CHLO operations without an HLO op."""

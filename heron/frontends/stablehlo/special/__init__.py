"""Special functions written out in elementary ones: what CHLO operations without an HLO op become."""

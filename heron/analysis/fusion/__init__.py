"""What a fusion does: what is computed in place, what may share a buffer, how sorts and scans are laid out."""

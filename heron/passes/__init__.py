"""HLO → HLO passes: one pass a file, folders by theme; found by registration, listed by `heron passes`."""

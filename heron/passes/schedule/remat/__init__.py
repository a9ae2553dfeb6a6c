"""The parts of rematerialization: what is held when, what computing it again takes, the search, the rewriting."""

"""The CPU: the whole thunk sequence as one native program."""

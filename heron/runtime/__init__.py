"""Running compiled programs: thunks, executables, library bindings; one folder per kind of machine."""

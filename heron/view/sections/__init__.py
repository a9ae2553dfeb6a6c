"""The sections of a page: each makes plain data of one part of a trace; an empty one where the trace has nothing."""

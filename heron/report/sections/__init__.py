"""The sections of ``heron report``, one a file: each makes a `Section` of a `Subject`."""

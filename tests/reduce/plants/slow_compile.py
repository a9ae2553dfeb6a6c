"""A planted fault: the rule for a sum with a tanh ponders for a while, each time it is asked."""

import os
import time

import heron

SECONDS = float(os.environ.get("PONDER", "1.5"))


@heron.rewrite("add", operand="tanh")
def ponders(i, b):
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        pass
    return None

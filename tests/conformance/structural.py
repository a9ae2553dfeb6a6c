"""All cases of ops that are not elementwise."""

from __future__ import annotations

from tests.conformance import drawn, test_convolution, test_dot, test_indexing, test_movement, test_reduce, test_sort
from tests.conformance import test_transforms as transforms
from tests.conformance.case import Case


def cases(full: bool = True) -> list[Case]:
    """The tables that the tests run, family by family; ``full``: and 1300 cases with drawn shapes and attributes."""
    tables = [
        *test_dot.dot_cases(),
        *test_convolution.convolution_cases(),
        *test_convolution.hole_cases(),
        *test_reduce.reduce_cases(),
        *test_reduce.window_cases(),
        *test_reduce.select_cases(),
        *test_indexing.gather_cases(),
        *test_indexing.scatter_cases(),
        *test_indexing.dynamic_cases(),
        *test_movement.movement_cases(),
        *test_sort.sort_cases(),
        *test_sort.topk_cases(),
        *transforms.fft_cases(),
        *transforms.cholesky_cases(),
        *transforms.solve_cases(),
        *transforms.norm_cases(),
    ]
    return tables + drawn.cases(100, first=1000) if full else tables

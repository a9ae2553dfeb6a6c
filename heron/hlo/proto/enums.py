"""Enumerations by number: the words HLO text has for them."""

from __future__ import annotations

from heron.errors import HeronError

FFT = ("FFT", "IFFT", "RFFT", "IRFFT")
DISTRIBUTION = ("", "rng_uniform", "rng_normal")
RNG_ALGORITHM = ("rng_default", "rng_three_fry", "rng_philox")
PADDING = ("", "PADDING_VALID", "PADDING_SAME")
TRANSPOSE = ("", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
PRECISION = ("default", "high", "highest")
SCHEDULE = ("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")
CONVOLUTION = ("unset", "fprop", "dgrad", "wgrad")
API_VERSION = (
    "",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)
ALIAS = ("", "may-alias", "must-alias")
DOT_ALGORITHM = (
    "",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "dot_bf16_bf16_f32_x9",
)


def number(names: tuple[str, ...], word: str) -> int:
    """The number of a word. Raises PROTO005 for one without."""
    if word not in names:
        raise HeronError("PROTO005", f"'{word}' has no number", why="there are: " + ", ".join(filter(None, names)))
    return names.index(word)


def word(names: tuple[str, ...], value: int) -> str | None:
    """The word of a number, None for that of nothing. Raises PROTO003 for a number nobody knows."""
    if not 0 <= value < len(names):
        raise HeronError("PROTO003", f"{value} is not the number of any of: {', '.join(filter(None, names))}")
    return names[value] or None

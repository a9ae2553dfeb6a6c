"""The programs PyTorch has too, as functions of the same arguments; compiled by ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Program = Callable[..., Any]


def programs(torch: Any) -> dict[str, Program]:
    """By the names of the workloads."""
    F = torch.nn.functional

    def gelu(x: Any) -> Any:
        return F.gelu(x, approximate="tanh")

    def layernorm(x: Any, g: Any, b: Any) -> Any:
        return F.layer_norm(x, (x.shape[-1],), g, b, 1e-5)

    def rmsnorm_swiglu(x: Any, g: Any, wg: Any, wu: Any, wd: Any) -> Any:
        wide = x.float()
        y = (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * g
        return x + (F.silu(y @ wg) * (y @ wu)) @ wd

    def transpose_chain(x: Any) -> Any:
        a, b, c = x.shape
        y = torch.tanh(x.permute(2, 0, 1)) + 1
        z = y.reshape(c * a, b).T * 2
        w = z.reshape(b, c, a).permute(2, 1, 0)
        return w - x.permute(0, 2, 1), torch.flip(x, (0, 2)).transpose(0, 1)

    return {
        "gelu_f32": gelu,
        "gelu_bf16": gelu,
        "softmax": lambda x: torch.softmax(x, -1),
        "layernorm": layernorm,
        "rmsnorm_swiglu": rmsnorm_swiglu,
        "matmul_f32": lambda a, b: a @ b,
        "matmul_bf16_gelu": lambda a, b, c: gelu(a @ b + c),
        "row_sum": lambda x: x.sum(1),
        "col_sum": lambda x: x.sum(0),
        "cumsum1": lambda x: torch.cumsum(x, 1),
        "transpose_chain": transpose_chain,
    }

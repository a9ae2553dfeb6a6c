"""convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.meaning import products
from heron.hlo.meaning.nibbles import by_halves
from heron.hlo.ops.dot import stated_type
from heron.hlo.ops.rules import array, attr, need_arrays, need_dims
from heron.hlo.ops.window import need_window

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.window import ConvDims


@op("convolution")
class Convolution(Op):
    """Sums of products over a window (a correlation, unless the window is reversed), as machine learning has it.

    Operands and result may be of any types; sums are made in the type a dot's are.

    Shape: batch and output features by `dim_labels`, and along each spatial dimension as many elements as windows fit.
    """

    operands = ("input", "kernel")
    attributes = {
        "window": Attr(AttrKind.WINDOW, ()),
        "dim_labels": Attr(AttrKind.DIM_LABELS, required=True),
        "feature_group_count": Attr(AttrKind.INT, 1),
        "batch_group_count": Attr(AttrKind.INT, 1),
        "convolution_kind": Attr(AttrKind.ENUM, "unset", choices=("unset", "fprop", "wgrad", "dgrad")),
        "operand_precision": Attr(AttrKind.WORDS),
        "sparsity_config": Attr(AttrKind.RAW),
    }
    traits = {Trait.PRODUCT, Trait.LIBRARY}
    linear = ("input", "kernel")
    code = 30

    def shape(self, i: Instruction, x: Shape, k: Shape) -> Shape:
        if i.sparsity_config is not None:
            reject(i, "operands that leave out zeros are only read and printed", f"it has {i.sparsity_config}")
        need_arrays(i, x, k)
        dims: ConvDims = attr(i, "dim_labels")
        spatial = len(dims.input_spatial)
        if x.rank != spatial + 2 or k.rank != spatial + 2:
            reject(i, f"dim_labels speak of rank {spatial + 2}", f"the operands are {x} and {k}")
        if len(dims.kernel_spatial) != spatial or len(dims.output_spatial) != spatial:
            reject(i, "dim_labels give input, kernel and output other numbers of spatial dimensions")
        need_dims(i, "dim_labels", (dims.input_batch, dims.input_feature, *dims.input_spatial), x.rank)
        need_dims(i, "dim_labels", (dims.kernel_input, dims.kernel_output, *dims.kernel_spatial), x.rank)
        need_dims(i, "dim_labels", (dims.output_batch, dims.output_feature, *dims.output_spatial), x.rank)
        window = need_window(i, spatial)
        for d, w in enumerate(window):
            if k.dims[dims.kernel_spatial[d]] != w.size:
                reject(
                    i,
                    f"window dimension {d} has size {w.size}",
                    f"the kernel has {k.dims[dims.kernel_spatial[d]]} there ({k})",
                )
        features, batch = _need_groups(i, x, k)
        sizes = [0] * x.rank
        sizes[dims.output_batch], sizes[dims.output_feature] = batch, features
        for d, w in enumerate(window):
            sizes[dims.output_spatial[d]] = w.output_size(x.dims[dims.input_spatial[d]])
        return array(stated_type(i, x, k), sizes)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, k: np.ndarray) -> np.ndarray:
        groups = i.feature_group_count, i.batch_group_count
        return by_halves(i, x, k, lambda a, b: products.convolution(a, b, i.window, i.dim_labels, *groups, i.shape))


def _need_groups(i: Instruction, x: Shape, k: Shape) -> tuple[int, int]:
    """Checks features, batch and their groups; gives the output's features and batch."""
    dims, groups, batch_groups = i.dim_labels, i.feature_group_count, i.batch_group_count
    features_in, batch = x.dims[dims.input_feature], x.dims[dims.input_batch]
    features_out = k.dims[dims.kernel_output]
    if groups < 1 or batch_groups < 1 or (groups > 1 and batch_groups > 1):
        reject(
            i,
            "one of feature_group_count and batch_group_count must be 1, the other at least 1",
            f"{groups} and {batch_groups}",
        )
    if features_in != k.dims[dims.kernel_input] * groups:
        reject(
            i,
            "input features must be the kernel's times feature_group_count",
            f"{features_in} and {k.dims[dims.kernel_input]} x {groups}",
        )
    if features_out % groups or features_out % batch_groups or batch % batch_groups:
        reject(
            i,
            "groups must divide the output features and the batch",
            f"features {features_out}, batch {batch}, groups {groups} and {batch_groups}",
        )
    return features_out, batch // batch_groups

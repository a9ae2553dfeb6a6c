"""convolution-group-converter: grouped convolutions as plain ones."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F8E8M0FNU, S32
from heron.hlo.ir.window import ConvDims
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, splat, transpose
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConvolutionGroupConverter(Expander):
    """Writes convolutions in groups without them: batch groups become feature groups, those a kernel with zeros.

    A group of the batch meets a group of the output features; with the groups moved from the batch into the input
    features, that is what feature groups mean. For those the kernel is repeated over all input features and is zero
    where input and output are in different groups. So an infinity or NaN of one group shows in the others; on finite
    values nothing changes. ``batch_only`` leaves feature groups to the target.

    For libraries without groups. No pipeline has it: kernels and matrix products go through the groups, and a kernel
    full of zeros takes five times as long with four groups.

    ROOT r = f32[1,6,4] convolution(f32[1,8,4] x, f32[3,2,4] k),
      window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=2
    ->
    spread = f32[3,2,2,4] broadcast(k), dimensions={0,2,3}
    whole = f32[3,4,4] reshape(spread)
    in = s32[3,4,4] iota(), iota_dimension=1
    two = s32[] constant(2)
    twos = s32[3,4,4] broadcast(two), dimensions={}
    gi = s32[3,4,4] divide(in, twos)
    out = s32[3,4,4] iota(), iota_dimension=2
    two2 = s32[] constant(2)
    twos2 = s32[3,4,4] broadcast(two2), dimensions={}
    go = s32[3,4,4] divide(out, twos2)
    same = pred[3,4,4] compare(gi, go), direction=EQ
    zero = f32[] constant(0)
    zeros = f32[3,4,4] broadcast(zero), dimensions={}
    kernel = f32[3,4,4] select(same, whole, zeros)
    ROOT r = f32[1,6,4] convolution(x, kernel), window={size=3}, dim_labels=b0f_0io->b0f
    """

    name = "convolution-group-converter"
    opcodes = frozenset({"convolution"})
    batch_only: bool = False

    def matches(self, i: Instruction) -> bool:
        if not self.batch_only and i.operands[1].shape.element_type is F8E8M0FNU:
            return False  # it has no zero
        return i.batch_group_count > 1 or (i.feature_group_count > 1 and not self.batch_only)

    def expand(self, i: Instruction) -> Instruction:
        x, k = i.operands
        groups = i.feature_group_count
        if i.batch_group_count > 1:
            groups = i.batch_group_count
            x = _batch_groups_to_features(x, i.dim_labels, groups)
        if not self.batch_only:
            k, groups = _with_zeros(k, i.dim_labels, groups), 1
        attrs = {n: v for n, v in i.attrs.items() if n not in ("feature_group_count", "batch_group_count")}
        if groups > 1:
            attrs["feature_group_count"] = groups
        new = home(i).add("convolution", [x, k], i.shape, like=i, **attrs)
        new.extras = dict(i.extras)
        return new


def _batch_groups_to_features(x: Instruction, dims: ConvDims, groups: int) -> Instruction:
    """The input with 1/groups of the batch, and the features of all groups one after the other."""
    b, f = dims.input_batch, dims.input_feature
    sizes = list(x.shape.dims)
    split = reshape(x, [*sizes[:b], groups, sizes[b] // groups, *sizes[b + 1 :]])
    rest = [d for d in range(split.shape.rank) if d != b]
    rest.insert(f, b)  # the group goes just before the feature, which is dimension f without it
    moved = transpose(split, rest)
    sizes[b], sizes[f] = sizes[b] // groups, sizes[f] * groups
    return reshape(moved, sizes)


def _with_zeros(k: Instruction, dims: ConvDims, groups: int) -> Instruction:
    """The kernel over all input features, zero between groups."""
    c, t, d = home(k), k.shape.element_type, dims.kernel_input
    inside, outside = k.shape.dims[d], k.shape.dims[dims.kernel_output] // groups
    spread = array(t, (*k.shape.dims[:d], groups, *k.shape.dims[d:]))
    repeated = c.add("broadcast", [k], spread, dimensions=tuple(n for n in range(spread.rank) if n != d))
    sizes = list(k.shape.dims)
    sizes[d] *= groups
    whole = reshape(repeated, sizes)
    places = array(S32, sizes)
    group_in = c.add("iota", [], places, iota_dimension=d) / max(inside, 1)
    group_out = c.add("iota", [], places, iota_dimension=dims.kernel_output) / max(outside, 1)
    return c.add("select", [group_in.eq(group_out), whole, splat(c, whole.shape, 0)])

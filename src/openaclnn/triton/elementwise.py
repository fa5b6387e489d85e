# SPDX-License-Identifier: Apache-2.0
"""The element-wise rows: one driver, and a formula for each kernel.

Values are computed in fp32, or in fp64 where an input is, and rounded once. The same formula code
computes every element, whatever the layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.target_info import current_target
from triton.runtime.jit import constexpr_function

from ..rows.schema import Op
from .forms import ATTRIBUTES, form_of
from .launch import OPTIONS, collapse
from .launching import Launch
from .numbers import INTERPRETED

# Elements of a program and its warps, by the bytes of an element of the output.
BLOCKS = {2: (1024, 4), 4: (1024, 4), 8: (1024, 4)}


@constexpr_function
def narrow(of: Any, dtype: Any) -> bool:
    """Whether this GPU has instructions that round to this dtype, and find NaN, in pairs."""
    if INTERPRETED.value or of != tl.float32 or dtype not in (tl.float16, tl.bfloat16):
        return False
    return bool(dtype == tl.float16 or current_target().arch >= 90)


@triton.jit
def pairs(y, dtype: tl.constexpr):
    """y in 16 bits. Instructions give 0x7FFF as NaN, of which the canonical one has fewer bits."""
    if dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            """{ .reg .b32 n;
            cvt.rn.bf16x2.f32 $0, $2, $1;
            set.nan.u32.bf16x2 n, $0, $0;
            and.b32 n, n, 0x003F003F;
            xor.b32 $0, $0, n; }""",
            "=&r,f,f", [y], dtype=tl.bfloat16, is_pure=True, pack=2,
        )  # fmt: skip
    else:
        return tl.inline_asm_elementwise(
            """{ .reg .b32 n;
            cvt.rn.f16x2.f32 $0, $2, $1;
            set.nan.u32.f16x2 n, $0, $0;
            and.b32 n, n, 0x01FF01FF;
            xor.b32 $0, $0, n; }""",
            "=&r,f,f", [y], dtype=tl.float16, is_pure=True, pack=2,
        )  # fmt: skip


@triton.jit
def rounded(y, dtype: tl.constexpr):
    """y in the dtype of the output; every NaN is the canonical one."""
    if y.dtype == tl.float64 and dtype != tl.float64 and dtype != tl.float32:
        # To odd first: truncated and, when inexact, with the last bit set. Then only the rounding
        # to 16 bits is one to nearest.
        near = y.to(tl.float32)
        wide = near.to(tl.float64)
        bits = near.to(tl.int32, bitcast=True)
        bits = bits - tl.where(tl.abs(wide) > tl.abs(y), 1, 0)
        inexact = (wide != y) & (y == y)
        near = (bits | tl.where(inexact, 1, 0)).to(tl.float32, bitcast=True)
        result = near.to(dtype)
    else:
        result = y.to(dtype)
    return tl.where(y == y, result, tl.full(y.shape, float("nan"), dtype))


@triton.jit
def number(p, dtype: tl.constexpr):
    return tl.full((), p, tl.float64).to(dtype)  # the interpreter passes a Python float


@triton.jit
def value_of(x, y, p, formula: tl.constexpr, compute: tl.constexpr, dtype: tl.constexpr):
    """A formula computes in the dtype of its numbers, which may have more digits than `compute`."""
    exact: tl.constexpr = p[0].dtype
    result = formula(x.to(compute).to(exact), y.to(compute).to(exact), p).to(compute)
    if narrow(result.dtype, dtype):
        return pairs(result, dtype)
    else:
        return rounded(result, dtype)


@triton.jit(do_not_specialize=["count"])  # all blocks but the last are whole, whatever it is
def flat(
    a, b, out, count,
    p0: tl.float64, p1: tl.float64, p2: tl.float64, p3: tl.float64,
    p4: tl.float64, p5: tl.float64, p6: tl.float64, p7: tl.float64,
    formula: tl.constexpr, inputs: tl.constexpr, compute: tl.constexpr, numbers: tl.constexpr,
    index: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Element i of every operand lies at offset i."""
    p = (
        number(p0, numbers), number(p1, numbers), number(p2, numbers), number(p3, numbers),
        number(p4, numbers), number(p5, numbers), number(p6, numbers), number(p7, numbers),
    )  # fmt: skip
    first = tl.program_id(0).to(index) * block
    i = first + tl.arange(0, block).to(index)
    if first + block <= count:
        x = tl.load(a + i)
        y = tl.load(b + i) if inputs == 2 else x
        tl.store(out + i, value_of(x, y, p, formula, compute, out.dtype.element_ty))
    else:
        within = i < count
        x = tl.load(a + i, mask=within, other=0.0)
        y = tl.load(b + i, mask=within, other=0.0) if inputs == 2 else x
        y = value_of(x, y, p, formula, compute, out.dtype.element_ty)
        tl.store(out + i, y, mask=within)


@triton.jit
def strided(
    a, b, out, count, shape, a_strides, b_strides, out_strides,
    p0: tl.float64, p1: tl.float64, p2: tl.float64, p3: tl.float64,
    p4: tl.float64, p5: tl.float64, p6: tl.float64, p7: tl.float64,
    formula: tl.constexpr, inputs: tl.constexpr, compute: tl.constexpr, numbers: tl.constexpr,
    index: tl.constexpr, rank: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Any strides; the innermost dimension of the output is the last."""
    p = (
        number(p0, numbers), number(p1, numbers), number(p2, numbers), number(p3, numbers),
        number(p4, numbers), number(p5, numbers), number(p6, numbers), number(p7, numbers),
    )  # fmt: skip
    i = tl.program_id(0).to(index) * block + tl.arange(0, block).to(index)
    within = i < count
    at_a, at_b, at_out, left = i * 0, i * 0, i * 0, i
    for k in tl.static_range(1, rank + 1):  # shape[-k]
        at = left % shape[rank - k] if k < rank else left
        left = left // shape[rank - k] if k < rank else left
        at_a += at * a_strides[rank - k]
        at_b += at * b_strides[rank - k]
        at_out += at * out_strides[rank - k]
    x = tl.load(a + at_a, mask=within, other=0.0)
    y = tl.load(b + at_b, mask=within, other=0.0) if inputs == 2 else x
    y = value_of(x, y, p, formula, compute, out.dtype.element_ty)
    tl.store(out + at_out, y, mask=within)


def half_of(dtypes: tuple[torch.dtype, ...]) -> str:
    """Which forms of 16 bits compute: fp16 where all tensors are, bf16 for others of 16 bits."""
    if any(x not in (torch.float16, torch.bfloat16) for x in dtypes):
        return ""
    return "bf16" if torch.bfloat16 in dtypes else "fp16"


def launcher(op: Op, named: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """What enqueues the row on tensors of the same kind."""
    names = [p.name for p in op.input_tensors]
    first, last, target = names[0], names[-1], op.outputs[0].name
    tensors = [named[name] for name in (target, *names)]
    dtypes = tuple(t.dtype for t in tensors)
    shape = tensors[0].shape
    double = torch.float64 in dtypes[1:]
    layout = collapse([(t.shape, t.stride()) for t in tensors])
    attributes = [float(named[p.name]) for p in op.attributes]
    form = form_of(op, attributes, double, half_of(dtypes))
    numbers = (*form.numbers, *(0.0,) * (ATTRIBUTES - len(form.numbers)))
    count = math.prod(shape)
    if count == 0:
        return lambda named: None
    block, warps = BLOCKS[dtypes[0].itemsize]
    sizes: dict[str, Any] = {
        **{f"p{i}": x for i, x in enumerate(numbers)},
        "count": count,
        "formula": form.formula,
        "inputs": len(names),
        "compute": tl.float64 if double else tl.float32,
        "numbers": tl.float64 if double or form.in_double else tl.float32,
        "index": tl.int64 if layout.is_large else tl.int32,
        "block": block,
    }
    if not layout.is_flat:
        ours, *theirs = layout.strides
        sizes |= {"shape": layout.shape, "rank": len(layout.shape)}
        sizes |= {"a_strides": theirs[0], "b_strides": theirs[-1], "out_strides": ours}
    kernel = flat if layout.is_flat else strided
    options = {"num_warps": warps, **OPTIONS}
    launch = Launch(kernel, triton.cdiv(count, block), sizes, options)
    return lambda named: launch(named[first], named[last], named[target])

# SPDX-License-Identifier: Apache-2.0
"""Formulas in float64 of functions of one expression."""

from __future__ import annotations

import math

import numpy as np
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch

Tensor = torch.Tensor
SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def reduced(loss: Tensor, reduction: str) -> Tensor:
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[reduction]


def selu(x: Tensor) -> Tensor:
    return SELU_SCALE * torch.where(x > 0, x, SELU_ALPHA * torch.expm1(x))


def gelu(x: Tensor, tanh: int) -> Tensor:
    if tanh:
        return 0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


def ge_glu(x: Tensor, dim: int, tanh: int) -> tuple[Tensor, Tensor]:
    a, b = x.chunk(2, dim)
    return a * gelu(b, tanh), gelu(b, tanh)


def by_autograd(function, gradient: Tensor, *inputs: Tensor) -> list[Tensor]:
    """The gradients by the inputs that are not None."""
    given = [x.clone().requires_grad_() for x in inputs if x is not None]
    left = iter(given)
    y = function(*(None if x is None else next(left) for x in inputs))
    return list(torch.autograd.grad(y, given, gradient.expand_as(y)))


def clipped_swiglu(x, groups, dim, alpha, limit, bias, interleaved):
    rows = x.flatten(dim)
    a, b = (rows[..., ::2], rows[..., 1::2]) if interleaved else rows.chunk(2, -1)
    a, b = a.clamp(max=limit), b.clamp(-limit, limit)
    y = a / (1 + torch.exp(-alpha * a)) * (b + bias)
    if groups is not None:
        y[int(groups.sum()) :] = 0
    return y


def padded(x: Tensor, padding: list[int]) -> Tensor:
    array = x.detach().numpy()
    wide = [(0, 0)] * array.ndim
    for i in range(0, len(padding), 2):
        wide[-1 - i // 2] = (padding[i], padding[i + 1])
    return torch.from_numpy(np.pad(array, wide, mode="wrap"))


def unpadded(g: Tensor, x: Tensor, padding: list[int]) -> Tensor:
    """Adds each padded element to the element of x that it repeats."""
    places = padded(torch.arange(x.numel()).reshape(x.shape), padding)
    sums = torch.zeros(x.numel(), dtype=g.dtype).index_add(0, places.flatten(), g.flatten())
    return sums.reshape(x.shape)


def layer_norm(x: Tensor, eps: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    mean = x.mean(-1, keepdim=True)
    rstd = ((x - mean).square().mean(-1, keepdim=True) + eps).rsqrt()
    return (x - mean) * rstd, mean, rstd


def ada_layer_norm(x, scale, shift, weight, bias, eps):
    z, mean, rstd = layer_norm(x, eps)
    z = z if weight is None else z * weight + bias
    wide = x.shape[0], 1, x.shape[2]
    return z * (1 + scale.reshape(wide)) + shift.reshape(wide), mean, rstd


def ada_layer_norm_backward(g, x, _, rstd, mean, scale, shift, weight, bias):
    """With mean and rstd as they are given."""
    z, h = (x - mean) * rstd, x.shape[-1]
    d = g * (1 + scale.unsqueeze(1))
    t = d * weight
    dx = rstd / h * (h * t - t.sum(-1, True) - z * (t * z).sum(-1, True))
    return dx, (g * (z * weight + bias)).sum(1), g.sum(1), (d * z).sum((0, 1)), d.sum((0, 1))


def spread(var: Tensor, x: Tensor) -> Tensor:
    return var if var.dim() == x.dim() else var.unsqueeze(-1)


def gaussian(x, target, var, full, eps, reduction):
    v = spread(var, x).clamp(min=eps)
    loss = 0.5 * (v.log() + (x - target) ** 2 / v) + (0.5 * math.log(2 * math.pi) if full else 0)
    return reduced(loss, reduction)


def gaussian_grad(g, x, target, var, full, eps, reduction):
    return by_autograd(lambda a, v: gaussian(a, target, v, full, 0, reduction), g, x, var)


def group_norm(x, gamma, beta, groups, eps, activate):
    z, mean, rstd = layer_norm(x.reshape(x.shape[0], groups, -1), eps)
    y = z.reshape(x.shape) * gamma[:, None] + beta[:, None]
    return y * torch.sigmoid(y) if activate else y, mean.squeeze(-1), rstd.squeeze(-1)


def rotated_cumsum(x, dim, exclusive, reverse):
    array = x.numpy()
    array = np.flip(array, dim) if reverse else array
    sums = np.cumsum(array, dim) - (array if exclusive else 0)
    return torch.from_numpy((np.flip(sums, dim) if reverse else sums).copy())


def interpolated(g, index, weight, m):
    out = torch.zeros(*g.shape[:2], m, dtype=g.dtype)
    for b in range(g.shape[0]):
        for k in range(3):
            out[b].index_add_(1, index[b, :, k].long(), g[b] * weight[b, :, k])
    return out


def scatter_mean(self, dim, index, src, reduce, include):
    """Reductions 1, the sum, and 5, the mean."""
    sums = self.clone() if include else torch.zeros_like(self)
    counts = torch.full_like(self, float(include))
    sums.scatter_add_(dim, index, src)
    counts.scatter_add_(dim, index, torch.ones_like(src))
    made = sums / counts.clamp(min=1) if reduce == 5 else sums
    return made if include else torch.where(counts > 0, made, self)


def signs(x: Tensor, size: int) -> Tensor:
    packed = np.packbits(x.numpy() >= 0, bitorder="little")
    return torch.from_numpy(packed).reshape(size, -1)


def unsigned(x: Tensor, size: int, _) -> Tensor:
    bits = np.unpackbits(x.numpy(), bitorder="little").astype("d") * 2 - 1
    return torch.from_numpy(bits).reshape(size, -1)


def view_copy(dst, size, stride, offset, src, src_size, src_stride, src_offset):
    made = dst.clone()
    to = made.as_strided(size.tolist(), stride.tolist(), int(offset))
    to.copy_(src.as_strided(src_size.tolist(), src_stride.tolist(), int(src_offset)))
    return made


def qr(a: Tensor, some: bool) -> tuple[Tensor, Tensor]:
    return tuple(torch.from_numpy(m) for m in np.linalg.qr(a.numpy()))


REFERENCES = {
    "AcoshGrad": lambda y, dy: dy / y.sinh(),
    "AdaLayerNorm": lambda *a: ada_layer_norm(*a)[0],
    "AdaLayerNormBackward": ada_layer_norm_backward,
    "AdaLayerNormV2": ada_layer_norm,
    "AdaptiveMaxPool3d": lambda x, size: torch.nn.functional.adaptive_max_pool3d(
        x, size, return_indices=True),
    "AdaptiveMaxPool3dBackward": lambda g, x, i: torch.zeros_like(x).flatten(2).scatter_add(
        2, i.long().flatten(2), g.flatten(2)).reshape(x.shape),
    "AddN": lambda list_: sum(list_),
    "AddrV2": lambda x, a, b, beta, alpha: beta * x + a[:, None] * b,
    "AsStrided": lambda x, size, stride, offset: x.as_strided(size, stride, offset[0]),
    "AsinGrad": lambda y, dy: dy / (1 - y * y).sqrt(),
    "AssignSub": lambda a, b: a - b,
    "AxpyV2": lambda a, b, alpha: a + alpha * b,
    "BiasAdd": lambda x, bias, _: x + bias[:, None],
    "CircularPad2d": padded, "CircularPad2dBackward": unpadded,
    "CircularPad3d": padded, "CircularPad3dBackward": unpadded,
    "ClippedSwiglu": clipped_swiglu,
    "CumsumV2": rotated_cumsum,
    "Diag": lambda x, k: torch.from_numpy(np.diag(x.numpy(), k).copy()),
    "DiagFlat": lambda x, k: torch.from_numpy(np.diagflat(x.numpy(), k)),
    "DiagPart": lambda x: torch.from_numpy(np.diag(x.numpy()).copy()),
    "Digamma": torch.digamma,
    "DropoutBackward": lambda g, mask, scale: g * scale * torch.from_numpy(
        np.unpackbits(mask.numpy(), bitorder="little").astype("d")),
    "Einsum": lambda list_, _: list_[0] @ list_[1],
    "EluV2": lambda x, a, s, i: s * torch.where(x > 0, x, a * torch.expm1(x * i)),
    "Expand": lambda x, size: torch.from_numpy(np.broadcast_to(x.numpy(), (3, 4)).copy()),
    "Flatten": lambda x, axis: x.reshape(2, 12),
    "FloorDiv": lambda x, y: (x / y).floor(),
    "ForeachACosInplace": lambda xs: [x.acos() for x in xs],
    "ForeachAddListInplace": lambda xs, ys, a: [x + a * y for x, y in zip(xs, ys, strict=True)],
    "ForeachAddcdivList": lambda xs, ys, zs, a: [
        x + s * y / z for x, y, z, s in zip(xs, ys, zs, a, strict=True)],
    "ForeachAddcmulList": lambda xs, ys, zs, a: [
        x + s * y * z for x, y, z, s in zip(xs, ys, zs, a, strict=True)],
    "ForeachDivListInplace": lambda xs, ys: [x / y for x, y in zip(xs, ys, strict=True)],
    "ForeachLogInplace": lambda xs: [x.log() for x in xs],
    "ForeachMulListInplace": lambda xs, ys: [x * y for x, y in zip(xs, ys, strict=True)],
    "ForeachMulScalarInplace": lambda xs, a: [x * a for x in xs],
    "ForeachSubListInplace": lambda xs, ys, a: [x - a * y for x, y in zip(xs, ys, strict=True)],
    "ForeachSubScalarInplace": lambda xs, a: [x - a for x in xs],
    "FusedMulAddN": lambda a, b, c: a * c + b,
    "GatherNd": lambda x, i, _: torch.stack([x[a, b] for a, b in i.tolist()]),
    "GatherV3": lambda x, dim, i, *_: torch.stack([x[b, i[b]] for b in range(3)]),
    "GaussianNllLoss": gaussian, "GaussianNllLossGrad": gaussian_grad,
    "GeGlu": ge_glu,
    "GeGluBackward": lambda g, x, _, dim, tanh: by_autograd(
        lambda a: ge_glu(a, dim, tanh)[0], g, x),
    "Gemm": lambda a, b, c, alpha, beta, *_: alpha * (a @ b.T) + beta * c,
    "GlobalAveragePool": lambda x: x.mean((2, 3), True),
    "GlobalMaxPool": lambda x: x.amax((2, 3), True),
    "GroupNormSiluV2": group_norm,
    "Heaviside": lambda x, v: torch.where(x == 0, v, (x > 0).double()),
    "HingeLoss": lambda p, t: (1 - p * t).clamp(min=0),
    "HuberLoss": lambda x, t, d: torch.where(
        (x - t).abs() < d, (x - t) ** 2 / 2, d * ((x - t).abs() - d / 2)),
    "InplaceAddbmm": lambda x, a, b, beta, alpha, _: beta * x + alpha * (a @ b).sum(0),
    "InplaceBaddbmm": lambda x, a, b, beta, alpha, _: beta * x + alpha * (a @ b),
    "InplaceBitwiseOrScalar": lambda x, y: x | y,
    "InplaceBitwiseOrTensor": lambda x, y: x | y,
    "InplaceCumprod": lambda x, dim: torch.from_numpy(np.cumprod(x.numpy(), dim)),
    "InplaceNeg": lambda x: 0 - x,
    "InplaceRound": lambda x: torch.from_numpy(np.rint(x.numpy())),
    "InplaceScatterReduce": scatter_mean,
    "InplaceSelu": selu,
    "InplaceTrunc": lambda x: torch.from_numpy(np.fix(x.numpy())),
    "InplaceXLogYTensor": lambda x, y: x * y.log(),
    "IsInf": lambda x: x.abs() == math.inf,
    "Lgamma": lambda x: torch.tensor([math.lgamma(v) for v in x.flatten()]).double().reshape(
        x.shape),
    "LayerNormWithImplMode": lambda x, _, w, b, eps, __: (
        layer_norm(x, eps)[0] * w + b, *layer_norm(x, eps)[1:]),
    "LogSoftmaxV2": lambda x, dim: x - x.exp().sum(dim, True).log(),
    "Logdet": lambda x: torch.tensor(math.log(np.linalg.det(x.numpy()))) if np.linalg.det(
        x.numpy()) > 0 else torch.tensor(math.nan),
    "LpLoss": lambda x, t, p, reduction: reduced((x - t).abs(), reduction),
    "MaxN": lambda list_: torch.stack(torch.broadcast_tensors(*list_)).amax(0),
    "MaxPoolV3": lambda x, *_: torch.nn.functional.max_pool2d(x, 3, 2, 1),
    "MaxUnpool2dBackward": lambda g, x, i, *_: g.flatten(2).gather(2, i.flatten(2)).reshape(
        x.shape),
    "MaxUnpool3dBackward": lambda g, x, i, *_: g.flatten(2).gather(
        2, i.long().flatten(2)).reshape(x.shape),
    "MaxV2": lambda x, *_: x.amax(1, True),
    "MeanV2": lambda x, *_: x.sum(1) / x.shape[1],
    "MinN": lambda list_: torch.stack(list_).amin(0),
    "Modulate": lambda x, s, t: x * (1 + s[:, None]) + t,
    "ModulateBackward": lambda g, x, s, t: (g * s[:, None], (g * x).sum(1), g.sum(1)),
    "MseLossGrad": lambda g, x, t, reduction: 2 * g * (x - t) / x.numel(),
    "NonzeroV2": lambda x: torch.from_numpy(np.stack(x.numpy().nonzero())),
    "PdistForward": lambda x, p: torch.stack(
        [(x[i] - x[j]).norm() for i in range(6) for j in range(i + 1, 6)]),
    "Qr": qr,
    "Real": lambda x: x,
    "RealDiv": lambda x, y: x / y,
    "ReduceLogSum": lambda x, *_: x.sum(1, True).log(),
    "ReluGradV3": lambda x, g: g * (x > 0),
    "ReluGradV4": lambda g, mask, _: g * mask,
    "ReluV3": lambda x: (x.clamp(min=0), x > 0),
    "Scale": lambda x, s, b, *_: x * s + b,
    "ScatterNd": lambda x, i, u: torch.stack([x[0], u[1], x[2], u[0], x[4]]),
    "ScatterReduce": scatter_mean,
    "Selu": selu,
    "SeluBackward": lambda g, y: g * torch.where(
        y < 0, y + SELU_ALPHA * SELU_SCALE, torch.full_like(y, SELU_SCALE)),
    "Shrink": lambda x, far, b: torch.where(
        x > far, x - b, torch.where(x < -far, x + b, 0)),
    "SignBitsPack": signs, "SignBitsUnpack": unsigned,
    "SiluMul": lambda x, y: x * torch.sigmoid(x) * y,
    "SliceV2": lambda x, *_: x[1:9, 2:8:2],
    "SoftmaxGrad": lambda y, g: y * (g - (g * y).sum(-1, True)),
    "Softsign": lambda x: x / (1 + x.abs()),
    "SplitTensor": lambda x, *_: (x[:2], x[2:4], x[4:]),
    "Square": lambda x: x * x,
    "SquaredRelu": lambda x: x.clamp(min=0) ** 2,
    "StridedSlice": lambda x, *_: torch.from_numpy(x.numpy()[4:0:-2, 1::3].copy()),
    "Sum": lambda list_: sum(list_),
    "Swish": lambda x, beta: x * torch.sigmoid(beta * x),
    "SwishBackward": lambda g, x, beta: by_autograd(lambda a: a * torch.sigmoid(a), g, x),
    "TanhGrad": lambda y, g: g * (1 - y * y),
    "TfScatterAdd": lambda x, i, u: x.index_add(0, i, u),
    "ThreeInterpolateBackward": interpolated,
    "TruncateDiv": lambda x, y: torch.from_numpy(np.fix((x / y).numpy())),
    "TruncateMod": lambda x, y: torch.from_numpy(np.fmod(x.numpy(), y.numpy())),
    "Var": lambda x, *_: (x - x.mean(1, True)).square().sum(1) / (x.shape[1] - 1),
    "ViewCopy": view_copy,
}  # fmt: skip

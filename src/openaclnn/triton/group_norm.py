# SPDX-License-Identifier: Apache-2.0
"""GroupNormSwish and its gradient: how groups are divided among programs, and the launches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from ..rows.schema import Op
from . import group_norm_forward as forward
from . import group_norm_gradient as gradient
from .group_norm_ordered import ordered_gradient
from .launching import INTERPRETED, Launch, is_aligned


@dataclass(frozen=True)
class Tuning:
    """Elements and sizes at which the division changes; the benchmark tries others."""

    whole_forward: int = 16384  # the largest group that one program keeps in registers
    whole_gradient: int = 16384
    whole_row_bytes: int = 64  # with channels last: the shortest row of a group for that
    block: int = 4096  # elements of a tile
    block_last: int = 4096  # with channels last
    channels_last: int = 128  # at most, in a tile
    elements_a_warp: int = 1024
    programs: int = 8  # for each multiprocessor, before a program gets more than one tile
    programs_last: int = 4  # the same with channels last
    tiles: int = 4  # of a program at most; with channels last, no limit
    ordered_from: int = 1 << 60  # bytes read, from which one launch does both sweeps in order
    ordered_bytes: int = 8 << 20  # read between a sweep and the next over the same groups


tuning = Tuning()
_MULTIPROCESSORS = 4  # in the interpreter
_launches: dict[Any, list[Launch]] = {}
_counts: dict[int, int] = {}


def _multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return _MULTIPROCESSORS
    index = device.index or 0
    if index not in _counts:
        _counts[index] = torch.cuda.get_device_properties(index).multi_processor_count
    return _counts[index]


def _power(n: int) -> int:
    return 1 << (max(n, 1) - 1).bit_length()


@dataclass(frozen=True)
class Division:
    """Sizes of a call, and how it is divided: arguments of the kernels by their names."""

    N: int
    C: int
    P: int
    G: int
    last: bool
    itemsize: int
    processors: int
    tuning: Tuning

    @property
    def D(self) -> int:
        return self.C // self.G

    @property
    def groups(self) -> int:
        return self.N * self.G

    def whole(self, limit: int) -> tuple[int, int, int] | None:
        """BG, BD, BP where a program keeps a group in registers."""
        bd, bp = _power(self.D), _power(self.P)
        size = bd * bp
        row = self.D * self.itemsize
        if size > limit // max((self.itemsize // 4) ** 2, 1):
            return None
        if self.last and self.P > 1 and row < self.tuning.whole_row_bytes:
            return None
        room = self.tuning.elements_a_warp // size
        spare = self.groups // (2 * self.processors)
        return max(1, min(room, _power(spare + 1) // 2)), bd, bp

    def tiles(self) -> dict[str, int]:
        """BR, BP, TILES, S, RB, items of the kernels with two sweeps."""
        t = self.tuning
        wide = max((self.itemsize // 4) ** 2, 1)  # fp64 takes more registers
        if self.last:
            br = min(_power(self.C), t.channels_last)
            while self.C > br > 32 and self.C % br:  # no program for few channels
                br //= 2
            bp = min(_power(self.P), max(t.block_last // wide // br, 1))
            rows = -(-self.C // br)
            steps = -(-self.P // bp)
            each = -(-self.N * rows * steps // (t.programs_last * self.processors))
            each = min(each, steps)
            count = self.N * rows
        else:
            bp = min(_power(self.P), t.block // wide)
            br = min(_power(self.D), max(t.block // wide // bp, 1))
            rows = -(-self.D // br)
            steps = -(-self.P // bp)
            count = self.groups * rows
            each = min(max(1, count * steps // (t.programs * self.processors)), steps, t.tiles)
        splits = -(-steps // each)
        return {
            "BR": br, "BP": bp, "TILES": each, "S": splits, "RB": rows, "items": count * splits,
        }  # fmt: skip

    def warps(self, elements: int, most: int = 16) -> int:
        wide = max((self.itemsize // 4) ** 2, 1)  # fp64 takes more registers
        return max(1, min(most, _power(wide * elements // self.tuning.elements_a_warp)))


def _layout(x: Tensor, others: list[Tensor]) -> bool | None:
    """Whether the channels are last in the memory of all tensors; None for other layouts."""
    if all(t.is_contiguous() for t in (x, *others)):
        return x.dim() == 2 or math.prod(x.shape[2:]) == 1
    if all(t.movedim(1, -1).is_contiguous() for t in (x, *others)):
        return True
    return None


def _written(out: Tensor, inputs: list[Tensor], last: bool | None) -> Tensor:
    """`out`, or what is copied to it at the end: if it is no dense tensor, or if it shares memory
    with a small input that other programs still read. last: the layout of a large one."""
    if last is None:
        usable = out.is_contiguous()
    else:
        usable = (out.movedim(1, -1) if last else out).is_contiguous()
    if usable and all(out.data_ptr() != t.data_ptr() for t in inputs):
        return out
    if last:
        return torch.empty_like(out.movedim(1, -1), memory_format=torch.contiguous_format).movedim(
            -1, 1
        )
    return torch.empty_like(out, memory_format=torch.contiguous_format)


def _dense(t: Tensor, last: bool) -> Tensor:
    return t.movedim(1, -1).contiguous().movedim(-1, 1) if last else t.contiguous()


def run(op: Op, named: dict[str, Any]) -> None:
    """Enqueues the row; parameters by C name."""
    is_gradient = "dxOut" in named
    x, large = named["x"], named["dxOut" if is_gradient else "yOut"]
    others = [named["dy"], large] if is_gradient else [large]
    last = _layout(x, others)
    if last is None:  # that of x, if it is dense
        last = not x.is_contiguous() and x.movedim(1, -1).is_contiguous()
    names = ["gamma", "beta", *(("mean", "rstd") if is_gradient else ())]
    given = dict(named)
    for name in names:
        given[name] = named[name].contiguous()
    small = [given[name] for name in names]
    for name in ("x", "dy"):
        if name in named:
            given[name] = _dense(named[name], last)
    written: list[tuple[Tensor, Tensor]] = []
    for name in (
        ("dxOut", "dgammaOut", "dbetaOut") if is_gradient else ("yOut", "meanOut", "rstdOut")
    ):
        if (out := named.get(name)) is not None:
            is_large = out is large
            given[name] = _written(out, [] if is_large else small, last if is_large else None)
            written.append((out, given[name]))
    if is_gradient:
        _gradient(given, last)
    else:
        _forward(given, last)
    for out, temporary in written:
        if temporary is not out:
            out.copy_(temporary)


def _division(x: Tensor, groups: int, last: bool) -> Division:
    n, c, *rest = x.shape
    return Division(
        n, c, math.prod(rest), groups, last, x.element_size(), _multiprocessors(x.device), tuning
    )


def _constants(x: Tensor, scale: float) -> dict[str, Any]:
    wide = x.dtype == torch.float64
    return {
        "ACC": tl.float64 if wide else tl.float32,
        "FAST": not wide and not INTERPRETED,
        "SCALE": float(scale),
    }


def _key(kind: str, tensors: list[Tensor], division: Division, *constants: Any) -> Any:
    aligned = is_aligned(tensors)
    device = tensors[0].device
    return kind, division, tuple(t.dtype for t in tensors), aligned, device, repr(constants)


def _split(length: int) -> tuple[int, int]:
    """STEP and ALIGN of a row in memory."""
    align = math.gcd(length, 16)
    return length // align, align


def _forward(named: dict[str, Any], last: bool) -> None:
    x, y = named["x"], named["yOut"]
    mean, rstd = named["meanOut"], named["rstdOut"]
    gamma, beta = named["gamma"], named["beta"]
    d = _division(x, int(named["numGroups"]), last)
    eps, scale = float(named["eps"]), float(named["swishScale"])
    swish = bool(named["activateSwish"])
    key = _key("forward", [x, y, mean, gamma, beta, rstd], d, eps, scale, swish)
    launches = _launches.get(key)
    if launches is None:
        constants = _constants(x, scale) | {"EPS": eps, "SWISH": swish, "LAST": last}
        launches = _launches[key] = _forward_launches(d, constants)
    if len(launches) == 1:
        launches[0](x, gamma, beta, y, mean, rstd)
        return
    splits = launches[0].sizes["S"]
    parts = torch.empty(d.N * d.C * splits * 2, dtype=torch.float64, device=x.device)
    statistics = parts
    launches[0](x, parts)
    if last:
        statistics = torch.empty(3 * d.groups, dtype=launches[0].workspace, device=x.device)
        launches[1](parts, statistics, mean, rstd)
    launches[-1](x, gamma, beta, y, mean, rstd, parts, statistics)


def _workspace(constants: dict[str, Any]) -> torch.dtype:
    return torch.float64 if constants["ACC"] == tl.float64 else torch.float32


def _forward_launches(d: Division, constants: dict[str, Any]) -> list[Launch]:
    sizes: dict[str, Any] = {"G": d.G, "D": d.D, "P": d.P, "groups": d.groups, **constants}
    if (whole := d.whole(d.tuning.whole_forward)) is not None:
        bg, bd, bp = whole
        step, align = _split(d.D if d.last else d.P)
        sizes |= {"STEP": step, "ALIGN": align, "BG": bg, "BD": bd, "BP": bp}
        warps = d.warps(bg * bd * bp)
        return [Launch(forward.whole, -(-d.groups // bg), sizes, warps)]
    tiles = d.tiles()
    step, align = _split(d.C if d.last else d.P)
    sizes |= tiles | {"C": d.C, "STEP": step, "ALIGN": align}
    sizes["SPAN"] = tiles["TILES"] * tiles["BP"]
    sizes["BK"] = min(_power(d.D * tiles["S"]), 1024)
    warps = d.warps(tiles["BR"] * tiles["BP"])
    launches = [Launch(forward.sums, tiles["items"], sizes, warps)]
    launches[0].workspace = _workspace(constants)
    if d.last:
        launches.append(Launch(forward.combine, d.groups, sizes, 4))
    return [*launches, Launch(forward.apply, tiles["items"], sizes, warps)]


def _gradient(named: dict[str, Any], last: bool) -> None:
    dy, x, dx = named["dy"], named["x"], named["dxOut"]
    mean, rstd = named["mean"], named["rstd"]
    gamma, beta = named["gamma"], named["beta"]
    dgamma = named["dgammaOut"] if named["dgammaIsRequire"] else None
    dbeta = named["dbetaOut"] if named["dbetaIsRequire"] else None
    d = _division(x, int(named["numGroups"]), last)
    scale = float(named["swishScale"])
    wanted = dgamma is not None, dbeta is not None
    dgamma, dbeta = (t if t is not None else gamma for t in (dgamma, dbeta))  # not written
    tensors = [x, dy, dx, gamma, beta, mean, rstd, dgamma, dbeta]
    key = _key("gradient", tensors, d, scale, wanted)
    launches = _launches.get(key)
    if launches is None:
        constants = _constants(x, scale) | {"LAST": last, "GAMMA": wanted[0], "BETA": wanted[1]}
        launches = _launches[key] = _gradient_launches(d, constants)
    first = launches[0]
    parts = torch.empty(d.N * d.C * first.sizes["S"] * 2, dtype=first.workspace, device=x.device)
    if first.kernel is gradient.whole:
        first(dy, mean, rstd, x, gamma, beta, dx, parts)
        if any(wanted):
            launches[1](parts, gamma, parts, dgamma, dbeta)
        return
    if first.kernel is ordered_gradient:
        counters = torch.zeros(d.groups + 1, dtype=torch.int32, device=x.device)
        first(dy, mean, rstd, x, gamma, beta, dx, parts, counters)
        if any(wanted):
            launches[1](parts, gamma, parts, dgamma, dbeta)
        return
    first(dy, mean, rstd, x, gamma, beta, parts)
    statistics = parts
    if last:
        statistics = torch.empty(2 * d.groups, dtype=first.workspace, device=x.device)
        launches[1](parts, gamma, statistics, dgamma, dbeta)
    launches[-1](dy, mean, rstd, x, gamma, beta, dx, dgamma, dbeta, parts, statistics)


def _gradient_launches(d: Division, constants: dict[str, Any]) -> list[Launch]:
    sizes: dict[str, Any] = {
        "N": d.N, "G": d.G, "D": d.D, "C": d.C, "P": d.P, "groups": d.groups, **constants,
    }  # fmt: skip
    workspace = _workspace(constants)
    whole = d.whole(d.tuning.whole_gradient)
    tiles = {"S": 1} if whole is not None else d.tiles()
    terms = d.N * tiles["S"]  # of dgamma and dbeta
    sizes["BN"] = min(_power(terms), 256)
    sizes["BC"] = max(1, min(_power(d.C), 1024 // sizes["BN"], 16))
    sizes["BK"] = min(_power(d.D * tiles["S"]), 1024)
    finishing = -(-d.C // sizes["BC"]) if constants["GAMMA"] or constants["BETA"] else 0
    if whole is not None:
        bg, bd, bp = whole
        step, align = _split(d.D if d.last else d.P)
        sizes |= {"STEP": step, "ALIGN": align, "BG": bg, "BD": bd, "BP": bp, "S": 1}
        launch = Launch(gradient.whole, -(-d.groups // bg), sizes, d.warps(bg * bd * bp))
        launch.workspace = workspace
        return [launch, Launch(gradient.combine, finishing, sizes | {"groups": 0}, 4)]
    step, align = _split(d.C if d.last else d.P)
    sizes |= tiles | {"STEP": step, "ALIGN": align}
    warps = d.warps(tiles["BR"] * tiles["BP"])
    read = 2 * d.N * d.C * d.P * d.itemsize
    if not d.last and read >= d.tuning.ordered_from:
        per_group = tiles["items"] // d.groups
        together = max(1, d.tuning.ordered_bytes * d.groups // read)  # groups
        sizes |= {"LAG": min(together, d.groups) * per_group}
        first = Launch(ordered_gradient, 2 * tiles["items"], sizes, warps)
        first.workspace = workspace
        return [first, Launch(gradient.combine, finishing, sizes | {"groups": 0}, 4)]
    first = Launch(gradient.sums, tiles["items"], sizes, warps)
    first.workspace = workspace
    launches = [first]
    if d.last:
        launches.append(Launch(gradient.combine, d.groups + finishing, sizes, 4))
    last_grid = tiles["items"] + (0 if d.last else finishing)
    return [*launches, Launch(gradient.apply, last_grid, sizes, warps)]

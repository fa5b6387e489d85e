# SPDX-License-Identifier: Apache-2.0
"""How the groups of a call are divided among programs, and its launches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton.language as tl

from . import group_norm_forward as forward
from . import group_norm_gradient as gradient
from .group_norm_resident import resident_forward, resident_gradient
from .launching import INTERPRETED, Launch


@dataclass(frozen=True, eq=False)
class Tuning:
    """Elements and sizes at which the division changes; benchmarks/gpu.py tries others."""

    whole_forward: int = 16384  # the largest group that one program keeps in registers
    whole_gradient: int = 16384  # half as many of fp32
    whole_row_bytes: int = 64  # with channels last: the shortest row of a group for that,
    whole_last_bytes: int = 1 << 20  # unless x is so small that two more launches take longer
    block: int = 2048  # elements of a tile
    block_last: int = 4096  # with channels last
    channels_last: int = 128  # at most, in a tile
    elements_a_warp: int = 512
    elements_a_warp_last: int = 1024
    registers: int = 0  # of a thread at most, if not 0, in kernels of two sweeps
    programs: int = 4  # for each multiprocessor, before a program gets more than one tile
    programs_last: int = 4  # the same with channels last
    tiles: int = 8  # of a program at most; with channels last, no limit
    resident: int = 4096  # elements that a program of `resident` keeps in registers; 0: no such
    resident_bytes: int = 40 << 20  # of the inputs at least; fewer stay in the L2 cache
    resident_items: int = 64  # of a group at most: more programs wait longer than they would read
    resident_threads: int = 512  # of a multiprocessor; they share 65536 registers
    resident_fetch: bool = True  # whether a program that waits fetches its next item
    dependent: bool = True  # whether `apply` starts while `sums` ends, where the GPU can


WAITING = not INTERPRETED  # programs of the interpreter run one after the other
FEW = {"num_warps": 4}


def _power(n: int) -> int:
    return 1 << (max(n, 1) - 1).bit_length()


@dataclass(frozen=True)
class Division:
    """Sizes of a call, and arguments of the kernels by their names."""

    N: int
    C: int
    P: int
    G: int
    last: bool
    itemsize: int
    processors: int
    tuning: Tuning
    early: bool = False  # whether the GPU has programmatic dependent launch

    @property
    def D(self) -> int:
        return self.C // self.G

    @property
    def groups(self) -> int:
        return self.N * self.G

    @property
    def size(self) -> int:
        """Bytes of x."""
        return self.N * self.C * self.P * self.itemsize

    @property
    def wide(self) -> int:
        """How many times fewer elements a tile has: fp64 takes more registers."""
        return max((self.itemsize // 4) ** 2, 1)

    def row(self, length: int) -> dict[str, int]:
        """The length of a row in memory, as STEP ALIGN."""
        align = math.gcd(length, 16)
        return {"STEP": length // align, "ALIGN": align}

    def whole(self, limit: int) -> dict[str, int] | None:
        """Sizes where a program keeps BG groups in registers."""
        bd, bp = _power(self.D), _power(self.P)
        size = bd * bp
        short = self.D * self.itemsize < self.tuning.whole_row_bytes
        short = short and self.size > self.tuning.whole_last_bytes
        if size > limit // self.wide or (self.last and self.P > 1 and short):
            return None
        room = self.tuning.elements_a_warp // size
        spare = self.groups // (2 * self.processors)
        bg = max(1, min(room, _power(spare + 1) // 2))
        return {"BG": bg, "BD": bd, "BP": bp, **self.row(self.D if self.last else self.P)}

    def tiles(self) -> dict[str, int]:
        """Sizes of the kernels with two sweeps."""
        t = self.tuning
        if self.last:
            br = min(_power(self.C), t.channels_last)
            while self.C > br > 32 and self.C % br:  # no program for few channels
                br //= 2
            bp = min(_power(self.P), max(t.block_last // self.wide // br, 1))
            count = self.N * -(-self.C // br)
            steps = -(-self.P // bp)
            each = min(-(-count * steps // (t.programs_last * self.processors)), steps)
        else:
            bp = min(_power(self.P), t.block // self.wide)
            br = min(_power(self.D), max(t.block // self.wide // bp, 1))
            count = self.groups * -(-self.D // br)
            steps = -(-self.P // bp)
            each = min(max(1, count * steps // (t.programs * self.processors)), steps, t.tiles)
            each = _power(each + 1) // 2  # a power of two often divides `steps`
        splits = -(-steps // each)
        return {
            "BR": br, "BP": bp, "TILES": each, "SPAN": each * bp, "S": splits,
            "RB": -(-(self.C if self.last else self.D) // br), "items": count * splits,
            "BK": min(_power(self.D * splits), 1024), "ONCE": self.D * splits <= 1024,
            **self.row(self.C if self.last else self.P),
        }  # fmt: skip

    def resident(self, inputs: int) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Sizes and options where the programs of one launch keep whole groups in registers."""
        t = self.tuning
        size = t.resident
        if self.last or self.itemsize == 8 or not size or not WAITING:  # fp64: too many registers
            return None
        if inputs * self.size < t.resident_bytes:
            return None

        def rows(bp: int) -> int:
            return min(_power(self.D), size // bp)

        def items(bp: int) -> int:
            return -(-self.D // rows(bp)) * -(-self.P // bp)

        longest = min(_power(self.P), size)
        bp = min((longest >> i for i in range(8) if longest >> i), key=items)
        warps = self.warps(size, 1024)
        most = t.resident_threads // (32 * warps) * self.processors
        programs = min(self.groups * items(bp), most)
        if items(bp) > min(programs, t.resident_items):
            return None
        splits = -(-self.P // bp)
        sizes = {
            "BR": rows(bp), "BP": bp, "S": splits, "RB": -(-self.D // rows(bp)),
            "items": self.groups * items(bp), "programs": programs, "FETCH": t.resident_fetch,
            "BK": min(_power(self.D * splits), 1024), "ONCE": self.D * splits <= 1024,
            **self.row(self.P),
        }  # fmt: skip
        registers = min(65536 // t.resident_threads // 8 * 8, 255)
        options = {"num_warps": warps, "maxnreg": registers, "launch_cooperative_grid": True}
        return sizes, options

    def warps(self, elements: int, each: int) -> int:
        return max(1, min(16, _power(self.wide * elements // each)))

    def options(self, sizes: dict[str, Any], tiles: int = 1) -> dict[str, int]:
        """Of the launches of two sweeps; `tiles`: how many times more registers a tile takes."""
        t = self.tuning
        each = (t.elements_a_warp_last if self.last else t.elements_a_warp) // tiles
        options = {"num_warps": self.warps(sizes["BR"] * sizes["BP"], each)}
        return options | ({"maxnreg": t.registers} if t.registers else {})

    def constants(self, scale: float) -> dict[str, Any]:
        double = self.itemsize == 8
        return {
            "N": self.N, "C": self.C, "D": self.D, "P": self.P, "G": self.G, "groups": self.groups,
            "LAST": self.last, "SCALE": scale, "ACC": tl.float64 if double else tl.float32,
            "SUM": tl.float32 if self.itemsize == 2 else tl.float64,
            "FAST": not double and not INTERPRETED,
            "PDL": self.early and self.tuning.dependent and not INTERPRETED and not self.last,
        }  # fmt: skip


@dataclass(frozen=True)
class Prepared:
    """The launches of a call, and the elements of its workspaces."""

    launches: list[Launch]
    parts: int
    statistics: int
    dtype: torch.dtype  # of both
    counters: int = 0  # of `resident`


def _of_two_sweeps(
    d: Division, constants: dict[str, Any]
) -> tuple[dict[str, Any], int, dict[str, int]]:
    """Sizes, parts, options."""
    sizes = constants | d.tiles()
    return sizes, 2 * d.N * d.C * sizes["S"], d.options(sizes)


def _start(sizes: dict[str, Any]) -> dict[str, Any]:
    """Options of the second launch."""
    return {"launch_pdl": True} if sizes["PDL"] else {}


def prepare_forward(d: Division, eps: float, swish: bool, scale: float) -> Prepared:
    constants = d.constants(scale) | {"EPS": eps, "SWISH": swish}
    if (whole := d.whole(d.tuning.whole_forward)) is not None:
        bg = whole["BG"]
        warps = d.warps(bg * whole["BD"] * whole["BP"], d.tuning.elements_a_warp)
        launch = Launch(forward.whole, -(-d.groups // bg), constants | whole, {"num_warps": warps})
        return Prepared([launch], 0, 0, torch.float64)
    if (found := d.resident(1)) is not None:
        sizes, options = constants | found[0], found[1]
        launch = Launch(resident_forward, sizes["programs"], sizes, options)
        parts = 2 * d.N * d.C * sizes["S"]
        return Prepared([launch], parts, 0, torch.float64, counters=d.groups)
    sizes, parts, options = _of_two_sweeps(d, constants)
    launches = [Launch(forward.sums, sizes["items"], sizes, options)]
    if d.last:
        launches.append(Launch(forward.combine, d.groups, sizes, FEW))
    launches.append(Launch(forward.apply, sizes["items"], sizes, options | _start(sizes)))
    return Prepared(launches, parts, 2 * d.groups if d.last else 0, torch.float64)


def prepare_gradient(d: Division, gamma: bool, beta: bool, scale: float) -> Prepared:
    constants = d.constants(scale) | {"GAMMA": gamma, "BETA": beta}
    dtype = torch.float64 if d.itemsize == 8 else torch.float32

    def finishing(splits: int) -> tuple[dict[str, int], int]:
        """Sizes of the sums over samples and splits, and their programs."""
        bn = min(_power(d.N * splits), 256)
        bc = max(1, min(_power(d.C), 1024 // bn, 16))
        return {"BN": bn, "BC": bc}, -(-d.C // bc) if gamma or beta else 0

    limit = d.tuning.whole_gradient // (1 if d.itemsize == 2 else 2)
    if (whole := d.whole(limit)) is not None:
        bg = whole["BG"]
        warps = d.warps(bg * whole["BD"] * whole["BP"], d.tuning.elements_a_warp)
        sums, programs = finishing(1)
        launches = [
            Launch(gradient.whole, -(-d.groups // bg), constants | whole, {"num_warps": warps})
        ]
        if programs:
            sizes = constants | sums | {"S": 1, "BK": 1, "groups": 0}
            launches.append(Launch(gradient.combine, programs, sizes, FEW))
        return Prepared(launches, 2 * d.N * d.C, 0, dtype)
    if (found := d.resident(2)) is not None:
        sizes, options = constants | found[0], found[1]
        sums, programs = finishing(sizes["S"])
        sizes |= sums | {"finishing": programs}
        launch = Launch(resident_gradient, sizes["programs"], sizes, options)
        return Prepared([launch], 2 * d.N * d.C * sizes["S"], 0, dtype, counters=d.groups + 1)
    sizes, parts, options = _of_two_sweeps(d, constants)
    sums, programs = finishing(sizes["S"])
    sizes |= sums
    items = sizes["items"]
    # Two sums, two tiles and the next two: 16 bits with channels last took 255 registers.
    many = d.options(sizes, 2) if d.last and d.itemsize == 2 else options
    launches = [Launch(gradient.sums, items, sizes, many)]
    if d.last:
        launches.append(Launch(gradient.combine, d.groups + programs, sizes, FEW))
    launches.append(
        Launch(gradient.apply, items + (0 if d.last else programs), sizes, options | _start(sizes))
    )
    return Prepared(launches, parts, 2 * d.groups if d.last else 0, dtype)

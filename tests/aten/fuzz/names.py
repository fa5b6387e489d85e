# SPDX-License-Identifier: Apache-2.0
"""What the names of parameters say where rows say nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .plausible import Draw

# Names of tensors that hold places, masks, small vectors.
INDEX = re.compile(
    r"ind(ex|ices)(32)?$|^target|targets|^sorter|repeats|[lL]engths$|^(seed|offset)$|zeroPoint"
    r"|groupList|seqLength|^ssmState|numAccepted|counts$|^counter|bagSize|offset2bag|Inverse$"
    r"|inverseOut|Counts$|countsOut|^(offsets|blockTable)$|^step$"
)
MASK = re.compile(r"[mM]ask$|^condition$|^isTarget$")
VECTOR = re.compile(
    r"^(weight|bias|gamma|beta|mean|rstd|invstd|running\w+|save\w+|\w*[mM]ean\w*|\w*[rR]std\w*|"
    r"\w*[iI]nvstd\w*|scale|zeroPoint|gradWeight|gradBias|gradGamma|gradBeta|dgamma|dbeta|"
    r"boundaries|index|vec\w*|sum\w*|squareSum|totalWeight|posWeight|counts?|counter|repeats|"
    r"out2|out3|batch\w+|total\w+|sampleCount)$"
)
OPTIONAL = re.compile(
    r"^(bias|weight|weights|pse\w*|dropMask|paddingMask|attenMask|sorter|posWeight|gamma|beta|"
    r"\w*[qQ]uant\w*|blockTable|\w+PaddingSize|\w*Prefix\w*|maxGradNorm|mask|windowOptional|"
    r"actualSeqLengths\w*|prefixN|qStartIdx|kvStartIdx|dsum|seqLength|gk|"
    r"numAcceptedTokens|perSampleWeights|scale|offset|groupList|running\w+|dpse|softmax|"
    r"gradWeight|gradBias|out[23]|outGelu|indices|relativePosBias)$"
)
SPATIAL = re.compile(r"(\d)d", re.IGNORECASE)
TEXTS = {
    "approximate": ("none", "tanh"), "inputLayout": ("BNSD", "BSND", "BSH", "SBH"),
    "rotaryMode": ("half", "interleave"), "mode": ("sum", "mean"),
}  # fmt: skip


def integer(draw: Draw, name: str, least: int | None, most: int | None) -> int:
    chance, base = draw.chance, draw.base
    low = name.lower()
    if name in draw.named and chance.random() < 0.95:
        return draw.sizes[name]
    if least is not None or most is not None:
        low_end = least if least is not None else 0
        high = min(most, low_end + 4) if most is not None else low_end + 3
        return chance.randint(low_end, max(high, low_end))
    if low in ("dim", "axis", "dimvalue"):
        return draw.dim - (len(base) if chance.random() < 0.3 else 0)
    if low in ("n", "c", "hxw"):
        spatial = 1
        for size in base[2:]:
            spatial *= size
        return {"n": base[0], "c": base[min(1, len(base) - 1)], "hxw": spatial}[low]
    if re.search("group|num|head|correction|size|step|bins|depth|length|^k$|^n$|^m$|nfft", low):
        return chance.choice((0, 1, 1, 1, 2, 2, 3, 4, base[0], base[-1]))
    return chance.choice((0, 0, 0, 1, 1, 2, -1, -100, base[draw.dim]))


def integers(draw: Draw, name: str) -> tuple[int, ...]:
    chance, base, low = draw.chance, draw.base, name.lower()
    n = chance.choice((draw.spatial, draw.spatial, draw.spatial, 1, 2, 3))
    if low in ("dim", "dims", "axes"):
        dims = list(range(len(base)))
        if chance.random() < 0.4:
            chance.shuffle(dims)
            return tuple(dims)
        return tuple(chance.sample(dims, chance.randrange(len(dims) + 1)))
    if "perm" in low:
        return tuple(chance.sample(range(len(base)), len(base)))
    if "normalizedshape" in low:
        return base[chance.randrange(len(base)) :]
    if re.search("kernel", low):
        return (chance.choice((1, 2, 2, 3)),) * n
    if re.search("stride|dilation", low):
        return (chance.choice((1, 1, 2)),) * n
    if (low == "padding" and "Pad" in draw.signature.name) or low == "pad":
        return tuple(chance.choice((0, 1, 1, 2)) for _ in range(2 * n))
    if re.search("pad", low):
        return (chance.choice((0, 0, 1)),) * n
    if low == "outputsize":
        return tuple(chance.choice((1, 2, 3, 4)) for _ in range(n))
    if re.search("inputsize", low) or low in ("size", "shape", "shapearray"):
        return base if chance.random() < 0.7 else tuple(chance.choices((1, 2, 3, 4), k=n + 2))
    if "splitsize" in low:
        whole, parts = base[draw.dim], []
        while whole > 0:
            parts.append(chance.randint(1, whole))
            whole -= parts[-1]
        return tuple(parts)
    if "bias" in low:
        return (base[min(1, len(base) - 1)],)
    if re.search("length", low):
        return tuple(chance.randint(1, base[0]) for _ in range(base[min(1, len(base) - 1)]))
    k = chance.choice((len(base), len(base), 1, 2))
    return tuple(chance.randrange(3) for _ in range(k))

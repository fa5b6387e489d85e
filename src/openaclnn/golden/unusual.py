# SPDX-License-Identifier: Apache-2.0
"""Calls of a sample that phase 1 must refuse, and inputs in whose memory the result may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..aten import Parameter, Row
from ..aten.prototypes import functions
from .calling import Call
from .samples import Sample, tensor_word

Mistake = tuple[str, str]  # of verify's MISTAKES; the parameter


def mistakes(sample: Sample) -> Iterator[Mistake]:
    """NULL for each input, and another shape and dtype for each output. openaclnn says which of
    them a function refuses (running.py)."""
    for p, word in zip(sample.row.given, sample.words, strict=True):
        if p.kind != "tensor" or word is None:
            continue
        if p.written:
            yield "wrong shape", p.name
        elif not _optional(p):
            yield "null input", p.name
        yield "wrong dtype", p.name


def _optional(p: Parameter) -> bool:
    return p.nullable or p.unless is not None or p.condition is not None


def mistaken(call: Call, mistake: Mistake) -> Call:
    """The call with the mistake."""
    what, name = mistake
    given, outputs = dict(call.given), dict(call.outputs)
    if what == "null input":
        return replace(call, given=given | {name: None})
    place = outputs if name in outputs else given
    x = place[name]
    assert x is not None  # chosen among the given tensors
    if what == "wrong shape":
        place[name] = np.zeros((*x.shape, 2), x.dtype)
    else:  # indices are FLOAT, all others BOOL
        place[name] = x.astype(np.float32 if x.dtype.kind in "iub" else np.bool_)
    return replace(call, given=given, outputs=outputs)


def alias_of(sample: Sample) -> str:
    """The input in whose memory the first output may be, where the function has an in-place form:
    self, if it has the shape and dtype of the output; or ""."""
    row = sample.row
    first, word = row.given[0], sample.words[0]
    written = [w for p, w in zip(row.given, sample.words, strict=True) if p.written]
    if not _has_inplace(row) or len(written) != 1 or None in (word, *written):
        return ""
    same = first.kind == "tensor" and tensor_word(word)[:2] == tensor_word(written[0])[:2]
    return first.name if same else ""


def _has_inplace(row: Row) -> bool:
    return row.name.replace("aclnn", "aclnnInplace", 1) in functions()

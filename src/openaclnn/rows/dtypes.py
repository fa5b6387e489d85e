# SPDX-License-Identifier: Apache-2.0
"""The float dtypes of the rows: names, codes and binary formats."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dtype:
    """Normal numbers are ±1.f · 2^e, with `digits` binary digits and e in [least, greatest]."""

    name: str  # of its aclDataType, without ACL_
    code: int  # aclDataType
    python: str  # as NumPy, torch and JAX name it
    short: str  # in tables
    spellings: tuple[str, ...]  # that people use besides
    bits: int
    digits: int
    least: int
    greatest: int

    @property
    def constant(self) -> str:
        """The enumerator of aclDataType."""
        return "ACL_BF16" if self.name == "BFLOAT16" else f"ACL_{self.name}"

    @property
    def canonical_nan(self) -> int:
        """The pattern of every NaN that the library makes: quiet, positive, no payload."""
        return (1 << self.bits - 1) - (1 << self.digits - 2)


DTYPES = {
    dtype.name: dtype
    for dtype in (
        Dtype("FLOAT", 0, "float32", "fp32", ("float", "f32", "f4", "single"), 32, 24, -126, 127),
        Dtype("FLOAT16", 1, "float16", "fp16", ("f16", "f2", "half"), 16, 11, -14, 15),
        Dtype("BFLOAT16", 27, "bfloat16", "bf16", (), 16, 8, -126, 127),
        Dtype("DOUBLE", 11, "float64", "fp64", ("double", "f64", "f8"), 64, 53, -1022, 1023),
    )
}

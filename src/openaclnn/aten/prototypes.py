# SPDX-License-Identifier: Apache-2.0
"""The C functions of the rows: their types, and the headers in which programs look for them."""

from __future__ import annotations

import re
from functools import cache

from ..catalogue import PHASE2, wrapped
from . import Parameter, Row, rows

# C types of the kinds; what is written is not const.
TYPES = {
    "tensor": "aclTensor*",
    "tensors": "aclTensorList*",
    "scalar": "aclScalar*",
    "scalars": "aclScalarList*",
    "ints": "aclIntArray*",
    "bools": "aclBoolArray*",
    "floats": "aclFloatArray*",
    "text": "char*",
    "int": "int64_t",
    "int32": "int32_t",
    "byte": "int8_t",
    "double": "double",
    "float": "float",
    "bool": "bool",
    "dtype": "aclDataType",
}

# Headers that have more functions than their name suggests, or another spelling. The functions are
# also in the header of their own name.
GATHERED = """
abs Abs
argmax ArgMax
argmin ArgMin
avgpool2d AvgPool2d
batch_matmul BatchMatMul
clamp Clamp ClampMin ClampMax ClampTensor ClampMinTensor ClampMaxTensor
copy InplaceCopy
geglu GeGluV3
grouped_matmul_v3 GroupedMatmulV3
hardsigmoid Hardsigmoid
logsoftmax LogSoftmax
pow PowTensorScalar PowScalarTensor
repeat_interleave RepeatInterleaveInt RepeatInterleaveIntWithDim RepeatInterleaveWithDim
sum ReduceSum
trans_matmul_weight TransMatmulWeight
upsample_nearest_2d UpsampleNearest2d UpsampleNearest2dV2
"""


# Functions of one phase, by the header they are in: core/aten has them.
PLAIN = {
    "aclnn_trans_matmul_weight.h": {
        "aclnnCalculateMatmulWeightSizeV2": "const aclIntArray* tensorShape, aclDataType dataType, "
        "uint64_t* weightTensorSize",
    },
}


def is_written(row: Row, parameter: Parameter) -> bool:
    """The self of an in-place function is."""
    return parameter.written or (row.inplace and parameter is row.parameters[0])


def declaration(row: Row, parameter: Parameter) -> str:
    kind = TYPES[parameter.kind]
    const = "const " if kind.endswith("*") and not is_written(row, parameter) else ""
    return f"{const}{kind} {parameter.name}"


def prototypes(row: Row) -> tuple[str, str]:
    """Both phases."""
    given = [declaration(row, p) for p in row.given]
    phase1 = [*given, "uint64_t* workspaceSize", "aclOpExecutor** executor"]
    return (
        wrapped(f"aclnnStatus {row.name}GetWorkspaceSize(", phase1, end=");"),
        wrapped(f"aclnnStatus {row.name}(", PHASE2.split(", "), end=");"),
    )


def stem(name: str) -> str:
    """aclnnInplacePowTensorTensor -> pow_tensor_tensor and aclStft -> acl_stft, for headers."""
    plain = name.removeprefix("aclnn").removeprefix("Inplace")
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", plain)
    return spaced.lower()


@cache
def functions() -> dict[str, Row]:
    """The rows that have C functions, by name."""
    return {row.name: row for row in rows() if not row.is_type}


@cache
def headers() -> dict[str, tuple[str, ...]]:
    """The functions of every header, by its file name."""
    found: dict[str, list[str]] = {}
    known = functions()
    for name in known:
        found.setdefault(stem(name), []).append(name)
        plain = name.removesuffix("s")  # aclnnAdds, of a number, is beside aclnnAdd
        if plain != name and plain in known:
            found.setdefault(stem(plain), []).append(name)
    for line in filter(None, GATHERED.splitlines()):
        header, *names = line.split()
        for name in names:
            for full in (f"aclnn{name}", f"aclnnInplace{name}"):
                if full in known and full not in found.setdefault(header, []):
                    found[header].append(full)
    return {
        f"{key}.h" if key.startswith("acl_") else f"aclnn_{key}.h": tuple(sorted(names))
        for key, names in sorted(found.items())
        if names
    }

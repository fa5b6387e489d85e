# SPDX-License-Identifier: Apache-2.0
"""The C functions of the rows: their types, and the headers in which programs look for them."""

from __future__ import annotations

import re
from functools import cache

from ..rows.catalogue import PHASE2, wrapped
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

# Headers that programs include: they have more functions than their name suggests, or another
# spelling. The functions are also in the header of their own name. The first is shown.
GATHERED = """
abs Abs
apply_adam_w_v2 ApplyAdamWV2
argmax ArgMax
argmin ArgMin
avgpool2d AvgPool2d
avgpool2d_backward AvgPool2dBackward
avgpool3d AvgPool3d
avgpool3d_backward AvgPool3dBackward
batch_matmul BatchMatMul
batch_norm_backward_reduce BatchNormReduceBackward
clamp Clamp ClampMin ClampMax ClampTensor ClampMinTensor ClampMaxTensor
copy InplaceCopy
geglu GeGluV3
geglu_backward GeGluV3Backward
grid_sampler2d GridSampler2D
grid_sampler2d_backward GridSampler2DBackward
grid_sampler3d GridSampler3D
grid_sampler3d_backward GridSampler3DBackward
grouped_matmul_v3 GroupedMatmulV3
hardsigmoid Hardsigmoid
isclose IsClose
isfinite IsFinite
isin IsInScalarTensor
isin_tensor_scalar IsInTensorScalar
isneginf IsNegInf
isposinf IsPosInf
lerp_scalar Lerps
lerp_tensor Lerp
logaddexp LogAddExp
logaddexp2 LogAddExp2
logsigmoid LogSigmoid LogSigmoidForward
logsigmoid_backward LogSigmoidBackward
logsoftmax LogSoftmax
logsoftmax_backward LogSoftmaxBackward
logspace LogSpace
logsumexp LogSumExp
normal_out NormalFloatFloat NormalFloatTensor NormalTensorFloat NormalTensorTensor
ones One
pad2d_backward ReplicationPad2dBackward
pow PowTensorScalar PowScalarTensor
reduce_sum ReduceSum
remainder RemainderTensorTensor RemainderTensorScalar RemainderScalarTensor
repeat_interleave RepeatInterleaveInt RepeatInterleaveIntWithDim RepeatInterleaveWithDim
rrelu_with_noise RReluWithNoise
searchsorted SearchSorted SearchSorteds
slogdet_native Slogdet
sum ReduceSum
trans_matmul_weight TransMatmulWeight
trans_quant_param TransQuantParamV2
upsample_bicubic_2d UpsampleBicubic2d
upsample_bicubic_2d_backward UpsampleBicubic2dBackward
upsample_bilinear_2d UpsampleBilinear2d
upsample_bilinear_2d_backward UpsampleBilinear2dBackward
upsample_bilinear_2d_backward_v2 UpsampleBilinear2dBackwardV2
upsample_linear_1d UpsampleLinear1d
upsample_linear_1d_backward UpsampleLinear1dBackward
upsample_nearest_1d UpsampleNearest1d
upsample_nearest_1d_backward UpsampleNearest1dBackward
upsample_nearest_1d_v2 UpsampleNearest1dV2
upsample_nearest_2d UpsampleNearest2d UpsampleNearest2dV2
upsample_nearest_2d_backward UpsampleNearest2dBackward
upsample_nearest_2d_v2 UpsampleNearest2dV2
upsample_nearest_3d UpsampleNearest3d
upsample_nearest_3d_backward UpsampleNearest3dBackward
upsample_trilinear_3d UpsampleTrilinear3d
upsample_trilinear_3d_backward UpsampleTrilinear3dBackward
var VarCorrection
"""


# Functions of one phase, by the header they are in: core/aten has them.
PLAIN = {
    "aclnn_npu_format_cast.h": {
        "aclnnNpuFormatCastCalculateSizeAndFormat": "const aclTensor* srcTensor, int dstFormat, "
        "int additionalDtype, int64_t** dstShape, uint64_t* dstShapeSize, int* actualFormat",
    },
    "aclnn_trans_matmul_weight.h": {
        "aclnnCalculateMatmulWeightSize": "const aclIntArray* tensorShape, "
        "uint64_t* weightTensorSize",
        "aclnnCalculateMatmulWeightSizeV2": "const aclIntArray* tensorShape, aclDataType dataType, "
        "uint64_t* weightTensorSize",
    },
    "aclnn_trans_quant_param.h": {
        "aclnnTransQuantParam": "const float* scaleArray, uint64_t scaleSize, "
        "const float* offsetArray, uint64_t offsetSize, uint64_t** quantParam, "
        "uint64_t* quantParamSize",
    },
}


# Functions that torch_npu also calls as NAMEGetMaxWorkspaceSize, for a workspace that graphs keep.
WITH_MAXIMUM = frozenset((
    "aclnnFlashAttentionUnpaddingScoreGradV5", "aclnnFlashAttentionVarLenScoreV5",
    "aclnnFusedInferAttentionScoreV3", "aclnnFusedInferAttentionScoreV4",
    "aclnnFusedInferAttentionScoreV5",
))  # fmt: skip


def is_written(row: Row, parameter: Parameter) -> bool:
    """The self of an in-place function is."""
    return parameter.written or (row.inplace and parameter is row.parameters[0])


def declaration(row: Row, parameter: Parameter) -> str:
    kind = TYPES[parameter.kind]
    const = "const " if kind.endswith("*") and not is_written(row, parameter) else ""
    return f"{const}{kind} {parameter.name}"


def phase1_names(name: str) -> list[str]:
    """The C functions of phase 1, which do the same."""
    return [f"{name}Get{most}WorkspaceSize" for most in ("", *["Max"] * (name in WITH_MAXIMUM))]


def prototypes(row: Row) -> tuple[str, ...]:
    """Phase 1, phase 2 and other names of phase 1."""
    given = [declaration(row, p) for p in row.given]
    phase1 = [*given, "uint64_t* workspaceSize", "aclOpExecutor** executor"]
    first, *others = [
        wrapped(f"aclnnStatus {name}(", phase1, end=");") for name in phase1_names(row.name)
    ]
    return (first, wrapped(f"aclnnStatus {row.name}(", PHASE2.split(", "), end=");"), *others)


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
def gathered() -> dict[str, list[str]]:
    """The functions of the headers of GATHERED, by the header's name without aclnn_ and .h."""
    found = {}
    for line in filter(None, GATHERED.splitlines()):
        header, *names = line.split()
        full = [f"aclnn{form}{name}" for name in names for form in ("", "Inplace")]
        found[header] = [name for name in full if name in functions()]
    return found


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
    for key, names in gathered().items():
        own = found.setdefault(key, [])
        own += [name for name in names if name not in own]
    return {
        f"{key}.h" if key.startswith("acl_") else f"aclnn_{key}.h": tuple(sorted(names))
        for key, names in sorted(found.items())
        if names
    }

// SPDX-License-Identifier: Apache-2.0
// Functions of one phase: sizes of weights in the layout FRACTAL_NZ, and scales as the bits that
// quantised products take. Memory keeps the plain order; only sizes and formats are the device's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/list.h"
#include "core/base/tensor.h"

#include "core/support/status.h"

using namespace openaclnn;

namespace {

#define PLAIN_FUNCTION extern "C" __attribute__((visibility("default"))) aclnnStatus

aclnnStatus missing(const char* call, const char* name) {
  return fail(ACLNN_ERR_PARAM_NULLPTR, Reason::null_argument, call, "%s must not be NULL", name)
      .code();
}

int64_t tiles(int64_t size, int64_t tile) { return size / tile + (size % tile != 0); }

// Elements of tiles with 16 rows and 32 bytes in each, of 16-bit floats 16 columns.
aclnnStatus weight_size(const char* call, const aclIntArray* handle, aclDataType dtype,
                        uint64_t* size) {
  if (handle == nullptr) return missing(call, "tensorShape");
  if (size == nullptr) return missing(call, "weightTensorSize");
  const HandlePool<aclIntArray>::Hold shape(int_arrays(), handle);
  if (!shape)
    return fail(ACLNN_ERR_PARAM_INVALID, {Reason::dead_handle, ObjectKind::int_array}, call,
                "tensorShape %p was destroyed or never created", static_cast<const void*>(handle))
        .code();
  if (dtype != ACL_FLOAT16 && dtype != ACL_BF16 && dtype != ACL_INT8)
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, call,
                "dataType must be FLOAT16, BF16 or INT8, but got aclDataType %d",
                static_cast<int>(dtype))
        .code();
  const uint64_t rank = shape->size;
  if (rank < 2 || rank > 6)
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, call,
                "tensorShape must have 2 to 6 sizes, but has %llu",
                static_cast<unsigned long long>(rank))
        .code();
  const int64_t columns = dtype == ACL_INT8 ? 32 : 16;
  uint64_t count = 1;
  uint64_t place = 0;
  for (const int64_t one : *shape) {
    const int64_t tile = place + 1 == rank ? columns : place + 2 == rank ? 16 : 1;
    ++place;
    if (one < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(tiles(one, tile)), &count) ||
        __builtin_mul_overflow(count, static_cast<uint64_t>(tile), &count))
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, call,
                  "tensorShape must have sizes from 0 whose product fits 64 bits, but has %lld",
                  static_cast<long long>(one))
          .code();
  }
  *size = count;
  return ACLNN_SUCCESS;
}

// A number of tiles' columns; 0 for dtypes without the layout.
int64_t tile_columns(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT4: return 64;
    case ACL_INT8:
    case ACL_UINT8: return 32;
    case ACL_FLOAT16:
    case ACL_BF16: return 16;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32: return 8;
    default: return 0;
  }
}

// The scale without its lower 13 bits, bit 46, and an offset of 9 bits from bit 37 on.
uint64_t quant_bits(float scale, const float* offset) {
  uint32_t bits = 0;
  std::memcpy(&bits, &scale, sizeof bits);
  uint64_t made = (bits & 0xFFFFE000U) | uint64_t{1} << 46;
  if (offset == nullptr) return made;
  const float rounded =
      std::isnan(*offset) ? 0.0F : std::clamp(std::rint(*offset), -256.0F, 255.0F);
  return made | (static_cast<uint64_t>(static_cast<int64_t>(rounded)) & 0x1FF) << 37;
}

}  // namespace

PLAIN_FUNCTION openaclnn_aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape,
                                                        uint64_t* weightTensorSize) {
  return weight_size("aclnnCalculateMatmulWeightSize", tensorShape, ACL_FLOAT16, weightTensorSize);
}

PLAIN_FUNCTION openaclnn_aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape,
                                                          aclDataType dataType,
                                                          uint64_t* weightTensorSize) {
  return weight_size("aclnnCalculateMatmulWeightSizeV2", tensorShape, dataType, weightTensorSize);
}

// The caller frees dstShape with delete[].
PLAIN_FUNCTION openaclnn_aclnnNpuFormatCastCalculateSizeAndFormat(
    const aclTensor* srcTensor, int dstFormat, int additionalDtype, int64_t** dstShape,
    uint64_t* dstShapeSize, int* actualFormat) {
  constexpr const char* call = "aclnnNpuFormatCastCalculateSizeAndFormat";
  if (srcTensor == nullptr) return missing(call, "srcTensor");
  if (dstShape == nullptr) return missing(call, "dstShape");
  if (dstShapeSize == nullptr) return missing(call, "dstShapeSize");
  if (actualFormat == nullptr) return missing(call, "actualFormat");
  const HandlePool<aclTensor>::Hold source(tensors(), srcTensor);
  if (!source)
    return fail(ACLNN_ERR_PARAM_INVALID, {Reason::dead_handle, ObjectKind::tensor}, call,
                "srcTensor %p was destroyed or never created", static_cast<const void*>(srcTensor))
        .code();
  if (dstFormat != ACL_FORMAT_ND && dstFormat != ACL_FORMAT_FRACTAL_NZ)
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, call,
                "dstFormat must be ND (2) or FRACTAL_NZ (29), but got %d", dstFormat)
        .code();
  const auto dtype =
      additionalDtype == -1 ? source->dtype : static_cast<aclDataType>(additionalDtype);
  const int64_t columns = tile_columns(dtype);
  if (columns == 0)
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, call,
                "additionalDtype must be -1 or a dtype of 4 to 32 bits, but gives aclDataType %d",
                static_cast<int>(dtype))
        .code();
  const int rank = source->shape.rank;
  const bool tiled = dstFormat == ACL_FORMAT_FRACTAL_NZ && rank >= 2;
  const int made = rank + (tiled ? 2 : 0);
  auto* sizes = new (std::nothrow) int64_t[static_cast<size_t>(std::max(made, 1))];
  if (sizes == nullptr)
    return fail(ACLNN_ERR_INNER, Reason::out_of_memory, call, "out of memory for %d sizes", made)
        .code();
  for (int i = 0; i < rank; ++i) sizes[i] = source->shape[i];
  if (tiled) {
    const int64_t k = source->shape[rank - 2], n = source->shape[rank - 1];
    sizes[rank - 2] = tiles(n, columns);
    sizes[rank - 1] = tiles(k, 16);
    sizes[rank] = 16;
    sizes[rank + 1] = columns;
  }
  *dstShape = sizes;
  *dstShapeSize = static_cast<uint64_t>(made);
  *actualFormat = tiled ? ACL_FORMAT_FRACTAL_NZ : ACL_FORMAT_ND;
  return ACLNN_SUCCESS;
}

// The caller frees quantParam with delete[].
PLAIN_FUNCTION openaclnn_aclnnTransQuantParam(const float* scaleArray, uint64_t scaleSize,
                                              const float* offsetArray, uint64_t offsetSize,
                                              uint64_t** quantParam, uint64_t* quantParamSize) {
  constexpr const char* call = "aclnnTransQuantParam";
  if (scaleArray == nullptr) return missing(call, "scaleArray");
  if (quantParam == nullptr) return missing(call, "quantParam");
  if (quantParamSize == nullptr) return missing(call, "quantParamSize");
  if (offsetArray == nullptr) offsetSize = 0;
  const uint64_t count = std::max(scaleSize, offsetSize);
  if (scaleSize == 0 || (scaleSize != count && scaleSize != 1) ||
      (offsetSize > 1 && offsetSize != count))
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, call,
                "scaleSize must be at least 1, and of scaleSize and offsetSize one must be 1 or "
                "both equal, but got %llu and %llu",
                static_cast<unsigned long long>(scaleSize),
                static_cast<unsigned long long>(offsetSize))
        .code();
  auto* made = count > SIZE_MAX / sizeof(uint64_t) ? nullptr
                                                   : new (std::nothrow)
                                                         uint64_t[static_cast<size_t>(count)];
  if (made == nullptr)
    return fail(ACLNN_ERR_INNER, Reason::out_of_memory, call, "out of memory for %llu scales",
                static_cast<unsigned long long>(count))
        .code();
  for (uint64_t i = 0; i < count; ++i)
    made[i] = quant_bits(scaleArray[scaleSize == 1 ? 0 : i],
                         offsetSize == 0 ? nullptr : offsetArray + (offsetSize == 1 ? 0 : i));
  *quantParam = made;
  *quantParamSize = count;
  return ACLNN_SUCCESS;
}

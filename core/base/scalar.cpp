// SPDX-License-Identifier: Apache-2.0
// Scalars of the C interface, and the number that one holds.
#include "core/base/scalar.h"

#include <bit>
#include <cstring>

#include "core/base/dtype.h"
#include "core/base/object.h"

namespace openaclnn {

HandlePool<aclScalar>& scalars() {
  return pool_of<aclScalar>(1 << 20, [] { scalars().forget_pins(); });
}

namespace {

template <class T>
T load(const Scalar& scalar) {
  T value;
  std::memcpy(&value, scalar.bytes, sizeof value);
  return value;
}

float bfloat16_value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// IEEE, unlike aclFloat16ToFloat: the exponent of ones is Inf or NaN.
float float16_value(uint16_t bits) {
  if ((bits & 0x7C00) != 0x7C00) return aclFloat16ToFloat(bits);
  const uint32_t sign = (bits & 0x8000u) << 16;
  return std::bit_cast<float>(sign | 0x7F800000u | (bits & 0x03FFu) << 13);
}

template <class To>
bool value_as(const Scalar& scalar, To* value) {
  const auto is = [&](auto number) { return *value = static_cast<To>(number), true; };
  switch (scalar.dtype) {
    case ACL_FLOAT: return is(load<float>(scalar));
    case ACL_DOUBLE: return is(load<double>(scalar));
    case ACL_FLOAT16: return is(float16_value(load<uint16_t>(scalar)));
    case ACL_BF16: return is(bfloat16_value(load<uint16_t>(scalar)));
    case ACL_INT8: return is(load<int8_t>(scalar));
    case ACL_INT16: return is(load<int16_t>(scalar));
    case ACL_INT32: return is(load<int32_t>(scalar));
    case ACL_INT64: return is(load<int64_t>(scalar));
    case ACL_UINT8: return is(load<uint8_t>(scalar));
    case ACL_UINT16: return is(load<uint16_t>(scalar));
    case ACL_UINT32: return is(load<uint32_t>(scalar));
    case ACL_UINT64: return is(load<uint64_t>(scalar));
    case ACL_BOOL: return is(load<uint8_t>(scalar) != 0);
    default: return false;
  }
}

}  // namespace

bool scalar_value(const Scalar& scalar, float* value) { return value_as(scalar, value); }
bool scalar_value(const Scalar& scalar, double* value) { return value_as(scalar, value); }

}  // namespace openaclnn

using namespace openaclnn;

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  if (value == nullptr) {
    return must_not_be_null("aclCreateScalar", "value").null();
  }
  const size_t size = dtype_size(dataType);
  if (size == 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, "aclCreateScalar",
                "dataType must have whole bytes per element, but got %s (%d)", dtype_name(dataType),
                static_cast<int>(dataType))
        .null();
  }
  aclScalar* scalar = create_object(scalars(), "aclCreateScalar");
  if (scalar == nullptr) return nullptr;
  scalar->dtype = dataType;
  std::memcpy(scalar->bytes, value, size);
  return scalar;
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return destroy_object(scalars(), "aclDestroyScalar", "scalar", scalar);
}

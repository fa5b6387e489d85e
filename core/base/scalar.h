// SPDX-License-Identifier: Apache-2.0
// A scalar attribute: up to 16 bytes of any dtype that has a size.
#pragma once

#include "acl/acl_base_rt.h"
#include "core/support/handles.h"

namespace openaclnn {

struct Scalar {
  aclDataType dtype = ACL_DT_UNDEFINED;
  alignas(16) unsigned char bytes[16] = {};
};

// Real numbers only: FLOAT, FLOAT16, BF16, DOUBLE, (U)INT8…64, BOOL. False, and nothing written,
// for other dtypes.
bool scalar_value(const Scalar& scalar, float* value);
bool scalar_value(const Scalar& scalar, double* value);

}  // namespace openaclnn

struct aclScalar : openaclnn::Scalar {
  static constexpr bool kPinned = true;  // while phase 1 reads it
};

namespace openaclnn {
HandlePool<aclScalar>& scalars();
}

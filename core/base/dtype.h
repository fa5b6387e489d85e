// SPDX-License-Identifier: Apache-2.0
// Element types: names as CANN prints them and sizes in bytes.
#pragma once

#include <cstddef>

#include "acl/acl_base_rt.h"

namespace openaclnn {

const char* dtype_name(
    aclDataType dtype);  // "FLOAT", "BFLOAT16", …; "UNKNOWN" for a value outside the enum
size_t dtype_size(
    aclDataType dtype);  // 0 for types without whole bytes per element and for unknown values

}  // namespace openaclnn

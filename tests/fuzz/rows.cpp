// SPDX-License-Identifier: Apache-2.0
#include "families.inc"
#include "fuzz.h"

namespace fuzz {

const std::vector<Row> rows = {
#include "rows.inc"
};

}  // namespace fuzz

// SPDX-License-Identifier: Apache-2.0
// What phase 1 checks of every row: product, dtypes, views and overlap. Each fails with one
// sentence.
#pragma once

#include "core/ops/operator.h"

namespace openaclnn {

Status check_product(const Operator& op, int product);
// Whether an argument is present and used at all.
bool is_wanted(const Operator& op, const Argument* arguments, int i);
Status check_dtypes(const Operator& op, const Argument* arguments, int product);
// The dtypes of inputs that a product accepts; none if it lacks the operator.
uint64_t accepted_dtypes(const Row& row, int product);
Status check_view(const Operator& op, const Parameter& parameter, const Tensor& tensor);
Status check_overlap(const Operator& op, const Argument* arguments);
Element element_of(aclDataType dtype);  // of a float dtype

}  // namespace openaclnn

// SPDX-License-Identifier: Apache-2.0
// What is known of a type of arrays.
#pragma once

#include "arrays.h"

namespace openaclnn::python {

struct ArrayType {
  PyTypeObject* type;
  Exchange exchange;  // nullptr: through __dlpack__
  bool is_torch;      // torch.Tensor or a subclass
  bool is_plain;      // ... that leaves the meaning of operations and memory as they are
};

// Looked up once for each type that is alive; then Python code runs.
ArrayType type_of(nb::handle array);

}  // namespace openaclnn::python

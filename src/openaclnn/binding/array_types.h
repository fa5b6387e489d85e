// SPDX-License-Identifier: Apache-2.0
// Properties of an array type.
#pragma once

#include "arrays.h"

namespace openaclnn::python {

struct ArrayType {
  PyTypeObject* type;
  Exchange exchange;  // nullptr: through __dlpack__
  bool is_torch;      // torch.Tensor or a subclass
  bool is_plain;      // does not override operations or memory
};

// Cached for each type; the first lookup runs Python code.
ArrayType type_of(nb::handle array);

}  // namespace openaclnn::python

// SPDX-License-Identifier: Apache-2.0
// Python values as attributes of a call. A value of another type is a TypeError that names the
// argument; what its own conversion raises is left as it is.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "arrays.h"

namespace openaclnn::python {

double to_real(nb::handle value, const ArgumentRef& argument);
int64_t to_integer(nb::handle value, const ArgumentRef& argument);
bool to_flag(nb::handle value, const ArgumentRef& argument);
const char* to_text(nb::handle value, const ArgumentRef& argument);  // lives as long as the value

}  // namespace openaclnn::python

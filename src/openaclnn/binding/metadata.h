// SPDX-License-Identifier: Apache-2.0
// The rows as the core knows them, and phase 1 on shapes and dtypes alone.
#pragma once

#include <nanobind/nanobind.h>

namespace openaclnn::python {

void define_metadata(nanobind::module_& m);

}  // namespace openaclnn::python

// SPDX-License-Identifier: Apache-2.0
// The library in which ATen computes, loaded at the first call: a program that links the libraries
// of `openaclnn home --aten` starts without PyTorch, and learns in a sentence what is missing.
#pragma once

#include "core/aten/row.h"
#include "core/support/status.h"

namespace openaclnn::aten {

// Sets *found; `call` heads the sentence of a failure.
Status find_backend(const char* call, const Backend** found);

}  // namespace openaclnn::aten

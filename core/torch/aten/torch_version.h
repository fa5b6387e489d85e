// SPDX-License-Identifier: Apache-2.0
// TORCH_VERSION_MAJOR, _MINOR and _PATCH, of torch 2.7 and later.
#pragma once

#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#else  // before 2.9
#include <torch/version.h>
#endif

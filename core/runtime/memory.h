// SPDX-License-Identifier: Apache-2.0
// Device memory is host memory with an owner: every allocation is known by address, size and kind.
#pragma once

#include <cstddef>

#include "core/runtime/status.h"

namespace openaclnn {

enum class MemoryKind { device, host };

// `call` heads the sentence of a failure. 64-byte aligned (2 MiB and huge pages advised from 2 MiB
// on); contents undefined.
Status allocate(const char* call, size_t size, MemoryKind kind, void** address);
Status release(const char* call, void* address,
               MemoryKind kind);  // fails unless it was allocated as `kind`

// From `address` to the end of the allocation it lies in; 0 when it lies in none.
size_t bytes_behind(const void* address);

}  // namespace openaclnn

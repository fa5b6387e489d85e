// SPDX-License-Identifier: Apache-2.0
#include "core/npu/provider.h"

#include <dlfcn.h>

#include "core/runtime/immortal.h"

namespace openaclnn::npu {

void* find_provided(const char* function) {
  static constinit Immortal<void*> opened;
  void* const library =
      opened.get([] { return dlopen("libaclnn_math.so", RTLD_LAZY | RTLD_LOCAL); });
  return library == nullptr ? nullptr : dlsym(library, function);
}

}  // namespace openaclnn::npu

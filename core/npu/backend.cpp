// SPDX-License-Identifier: Apache-2.0
#include "core/npu/backend.h"

#include <dlfcn.h>

#include "core/runtime/no_destructor.h"

namespace openaclnn::npu {

void* find_in_backend(const char* function) {
  static constinit NoDestructor<void*> opened;
  void* const library =
      opened.get([] { return dlopen("libaclnn_math.so", RTLD_LAZY | RTLD_LOCAL); });
  return library == nullptr ? nullptr : dlsym(library, function);
}

}  // namespace openaclnn::npu

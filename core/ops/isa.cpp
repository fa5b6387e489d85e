// SPDX-License-Identifier: Apache-2.0
#include "core/ops/isa.h"

#include <cstdlib>
#include <cstring>

namespace openaclnn {

#if defined(__x86_64__)

extern const Kernels kernels_v2, kernels_v3, kernels_v4;

const Kernels& kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
    __builtin_cpu_init();
    // every CPU with AVX2 and FMA has F16C too, whose name older compilers do not know here
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    const char* wish = std::getenv("OPENACLNN_ISA");
    if (v3 && wish != nullptr && std::strcmp(wish, "v3") == 0) return kernels_v3;
    if (wish != nullptr && std::strcmp(wish, "v2") == 0) return kernels_v2;
    return v4 ? kernels_v4 : v3 ? kernels_v3 : kernels_v2;
  }();
  return chosen;
}

#else

extern const Kernels kernels_native;

const Kernels& kernels() { return kernels_native; }

#endif

}  // namespace openaclnn

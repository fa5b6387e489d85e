// SPDX-License-Identifier: Apache-2.0
#include "core/ops/isa.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/support/environment.h"
#include "core/support/no_destructor.h"

namespace openaclnn {

#if defined(__x86_64__)

// The instruction sets of this build, oldest first; CMake's OPENACLNN_LEVELS selects them.
#define LEVEL(name) extern const Kernels kernels_##name;
#include "generated/levels.inc"
#undef LEVEL

namespace {

#define LEVEL(name) &kernels_##name,
constexpr const Kernels* kBuilt[] = {
#include "generated/levels.inc"
};
#undef LEVEL

bool cpu_has(const char* level) {
  __builtin_cpu_init();
  // F16C is implied by AVX2 and FMA; older compilers lack its name here
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return std::strcmp(level, "v2") == 0 || (std::strcmp(level, "v3") == 0 ? v3 : v4);
}

const Kernels& choose() {
  const char* wish = std::getenv("OPENACLNN_ISA");
  const bool wished = wish != nullptr && *wish != '\0';
  const Kernels* best = nullptr;
  for (const Kernels* level : kBuilt) {
    if (!cpu_has(level->isa)) continue;
    if (wished && std::strcmp(wish, level->isa) == 0) return *level;
    best = level;
  }
  if (best == nullptr) {
    std::fprintf(stderr,
                 "openaclnn: this build has no kernels for this CPU; build it without "
                 "OPENACLNN_LEVELS\n");
    std::abort();
  }
  if (wished) {
    warn_environment("OPENACLNN_ISA", "v2, v3 or v4, and one that this CPU has", wish, best->isa);
  }
  return *best;
}

}  // namespace

const Kernels& kernels() {
  static constinit NoDestructor<const Kernels*> chosen;
  return *chosen.get([] { return &choose(); });
}

#else

extern const Kernels kernels_native;

const Kernels& kernels() { return kernels_native; }

#endif

}  // namespace openaclnn

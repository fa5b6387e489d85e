// SPDX-License-Identifier: Apache-2.0
#include "core/support/environment.h"

#include <cstdio>

namespace openaclnn {

void warn_environment(const char* name, const char* must_be, const char* value, const char* used,
                      const char* hint) {
  std::fprintf(stderr, "openaclnn: %s must be %s, but is \"%s\"%s; %s is used\n", name, must_be,
               value, hint, used);
}

}  // namespace openaclnn

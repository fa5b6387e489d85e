// SPDX-License-Identifier: Apache-2.0
// Host memory is freed as if it were device memory.
#include "mistake.h"

int main() {
  begin();
  void* pinned = nullptr;
  must(aclrtMallocHost(&pinned, kBytes));
  aclrtFree(pinned);
  must(aclrtFreeHost(pinned));
  end();
}

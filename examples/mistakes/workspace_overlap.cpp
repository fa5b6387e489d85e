// SPDX-License-Identifier: Apache-2.0
// Two streams are given the same workspace, and nothing orders them.
#include "mistake.h"

int main() {
  begin();
  aclrtStream first = make_stream(), second = make_stream();
  {
    GroupNormSwishGrad a, b;
    float* workspace = device_memory(a.workspace_size);
    must(aclnnGroupNormSwishGrad(workspace, a.workspace_size, a.executor, first));
    must(aclnnGroupNormSwishGrad(workspace, b.workspace_size, b.executor, second));
    must(aclrtSynchronizeStream(first));
    must(aclrtSynchronizeStream(second));
    must(aclrtFree(workspace));
  }
  must(aclrtDestroyStream(first));
  must(aclrtDestroyStream(second));
  end();
}

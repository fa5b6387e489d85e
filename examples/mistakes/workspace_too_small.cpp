// SPDX-License-Identifier: Apache-2.0
// Phase 2 is promised the workspace that phase 1 asked for, but less was allocated.
#include "mistake.h"

int main() {
  begin();
  {
    GroupNormSwishGrad op;
    float* workspace = device_memory(op.workspace_size / 2);
    aclnnGroupNormSwishGrad(workspace, op.workspace_size, op.executor, nullptr);
    must(aclDestroyAclOpExecutor(op.executor));
    must(aclrtFree(workspace));
  }
  end();
}

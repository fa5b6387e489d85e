# SPDX-License-Identifier: Apache-2.0
"""The two phases from Python: a plan that runs in a loop, a stream, and the exact C names."""

import numpy as np

import openaclnn
from openaclnn import aclnn

x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0], dtype=np.float32)
y = np.empty_like(x)

# Phase 1 once: every argument is checked, the work is planned.
plan = openaclnn.plan("aclnnLeakyRelu", x, 0.5, y)
print(f"{plan.name} asks for {plan.workspace_size} bytes of workspace")

# Phase 2 as often as you like: the plan reads x and writes y where they are.
for step in range(3):
    plan.run()
    print(f"step {step}:", y)
    x -= 1

# On a stream phase 2 returns at once; the results are there after synchronize.
stream = openaclnn.Stream()
plan.run(stream)
stream.synchronize()
print("stream:", y)

# The same with the C names, for code that is being ported.
workspaceSize, executor = aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(x, 0.5)
aclnn.aclnnInplaceLeakyRelu(None, workspaceSize, executor, stream)
stream.synchronize()
print("in place:", x)

# A refused call says what must hold and what was found.
try:
    openaclnn.plan("aclnnLeakyRelu", x, 0.5, np.empty((2, 3), np.float32))
except openaclnn.AclnnError as error:
    print(error.status, error.name)
    print(error)

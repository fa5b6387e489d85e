# SPDX-License-Identifier: Apache-2.0
"""torch CPU tensors in, torch CPU tensors out: strided views, half types, no copies."""

import sys

import openaclnn

try:
    import torch
except ImportError:
    print("skipped: this example needs torch")
    sys.exit(0)

x = torch.linspace(-2, 2, 8, dtype=torch.bfloat16).reshape(2, 4)
y = openaclnn.leaky_relu(x, 0.1)
print(y.dtype, torch.equal(y, torch.nn.functional.leaky_relu(x, 0.1)))

columns = x[:, ::2]  # every other column, read through its strides
out = torch.empty(2, 2, dtype=torch.float32)  # the result is rounded once, to the dtype of out
openaclnn.leaky_relu(columns, 0.5, out=out)
print(out.tolist())

before = x.data_ptr()
openaclnn.leaky_relu_(x, 0.5)
print("in place:", x.data_ptr() == before)

# Gradients are recorded by openaclnn.torch: without it a tensor that requires one is refused.
weight = torch.ones(3, requires_grad=True)
try:
    openaclnn.leaky_relu(weight)
except openaclnn.AclnnError as error:
    print(error)
print(openaclnn.leaky_relu(weight.detach()).tolist())

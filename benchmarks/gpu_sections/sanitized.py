# SPDX-License-Identifier: Apache-2.0
"""Small cases of all kernels, for compute-sanitizer: python -m gpu_sections.sanitized cuda."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpu_sections.calling import ROWS, call, tune
from openaclnn.reference.evaluation import REFERENCES, sample

DEVICE = sys.argv[1]
SMALL = {"whole_forward": 0, "whole_gradient": 0}
for tuning in {}, {**SMALL, "resident": 0}, {**SMALL, "resident": 256, "resident_bytes": 0}:
    tune(**tuning)
    for name in "group_norm_swish", "group_norm_swish_grad":
        op = ROWS[name]
        attributes = {**REFERENCES[op.kernel].attributes[0], "num_groups": 4}
        for layout in "contiguous", "channels_last":
            inputs = sample(op, (2, 8, 9, 7), "FLOAT", 1, attributes)
            call(op, inputs, attributes, DEVICE, layout)
for name in "leaky_relu", "elu_backward", "logit_grad":
    op = ROWS[name]
    attributes = REFERENCES[op.kernel].attributes[0]
    for layout in "contiguous", "strided":
        call(op, sample(op, (3, 67), "FLOAT", 1, attributes), attributes, DEVICE, layout)
print("all called")

# SPDX-License-Identifier: Apache-2.0
"""Attributes of Elu and its gradient."""

from __future__ import annotations

SELU = (1.6732632423543772, 1.0507009873554805)  # alpha and scale


def elus(*attributes, **more):
    return dict(zip(("alpha", "scale", "input_scale"), attributes, strict=True)) | more

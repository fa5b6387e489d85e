# SPDX-License-Identifier: Apache-2.0
"""The operators as ordinary citizens of PyTorch: torch.ops.openaclnn, functions, modules."""

from __future__ import annotations

from .register import register as _register

_register()

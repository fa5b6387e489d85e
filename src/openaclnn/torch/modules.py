# SPDX-License-Identifier: Apache-2.0
"""torch.nn's modules with the operators in them: the same arguments, names and state_dict."""

from __future__ import annotations

from typing import Any

import torch

from . import functions


class LeakyReLU(torch.nn.LeakyReLU):
    """torch.nn.LeakyReLU with openaclnn's kernel."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return functions.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(torch.nn.ELU):
    """torch.nn.ELU with openaclnn's kernel."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return functions.elu(input, self.alpha, self.inplace)


class Hardshrink(torch.nn.Hardshrink):
    """torch.nn.Hardshrink with openaclnn's kernel."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return functions.hardshrink(input, self.lambd)


class GroupNormSwish(torch.nn.GroupNorm):
    """GroupNorm and SiLU in one; for the gradient it keeps only the input and the statistics."""

    def __init__(self, *arguments: Any, swish_scale: float = 1.0, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.swish_scale = swish_scale

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return functions.group_norm_swish(
            input, self.num_groups, self.weight, self.bias, self.eps, self.swish_scale
        )

    def extra_repr(self) -> str:
        usual: str = super().extra_repr()
        scale = "" if self.swish_scale == 1.0 else f", swish_scale={self.swish_scale}"
        return usual + scale


GroupNormSiLU = GroupNormSwish

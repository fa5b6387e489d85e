# SPDX-License-Identifier: Apache-2.0
"""torch.cdist with its gradients, and torch.stft, as on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

POWERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))
SHAPES = [
    ((4, 3), (5, 3)),
    ((2, 4, 3), (2, 5, 3)),
    ((2, 1, 4, 3), (3, 5, 3)),
    ((30, 6), (40, 6)),
    ((1, 3), (1, 3)),
    ((4, 1), (5, 1)),
    ((0, 3), (5, 3)),
    ((4, 3), (0, 3)),
    ((4, 0), (5, 0)),
]


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize(("one", "two"), SHAPES)
def test_gradients_of_cdist(p, one, two):
    generator = torch.Generator().manual_seed(3)
    given = [torch.randn(shape, generator=generator) for shape in (one, two)]
    if given[0].numel() and given[1].numel():
        given[1][..., 0, :] = given[0][..., 0, :].flatten()[: two[-1]]  # a distance of 0

    def found(device: str) -> list[torch.Tensor]:
        x, y = (t.to(device).requires_grad_() for t in given)
        distances = torch.cdist(x, y, p=p)
        weights = torch.linspace(0.5, 1.5, distances.numel()).reshape(distances.shape)
        (distances * weights.to(device)).sum().backward()
        return [distances.detach().cpu(), x.grad.cpu(), y.grad.cpu()]

    for got, want in zip(found("npu"), found("cpu"), strict=True):
        assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize("shape", [(200,), (3, 200)])
@pytest.mark.parametrize("complex_input", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"n_fft": 16},
        {"n_fft": 16, "hop_length": 5, "normalized": True},
        {"n_fft": 16, "win_length": 10, "window": True},
        {"n_fft": 15, "onesided": False, "center": False, "window": True},
        {"n_fft": 16, "return_complex": False, "window": True},
    ],
)
def test_stft(shape, complex_input, options):
    generator = torch.Generator().manual_seed(4)
    dtype = torch.complex64 if complex_input else torch.float32
    signal = torch.randn(shape, generator=generator, dtype=dtype)
    options = {"return_complex": True, "onesided": not complex_input, **options}
    if complex_input and options["onesided"]:
        pytest.skip("the spectrum of complex numbers has two sides")
    window = None
    if options.pop("window", False):
        window = torch.rand(options.get("win_length", options["n_fft"]), generator=generator)
    want = torch.stft(signal, window=window, **options)
    on_device = None if window is None else window.to("npu")
    got = torch.stft(signal.to("npu"), window=on_device, **options)
    assert_close(got.cpu(), want)

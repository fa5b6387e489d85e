# SPDX-License-Identifier: Apache-2.0
"""training.md shows what was measured; a replaced UNet learns the same and keeps less."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.torch.torch_support import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import training_page
from record import read
from unet import Data, UNet

import openaclnn.torch as ot


def case(faster=1.0, peak=100, share=0.1):
    return {
        "model": "UNet",
        "way": "eager",
        "command": "python benchmarks/training.py",
        "date": "2026-11-27",
        "batch": 8,
        "size": 32,
        "processes": 1,
        "weights": 100,
        "layout": "contiguous",
        "dtype": "fp32",
        "faster": faster,
        "quartiles": [faster, faster, faster],
        "share": share,
        "seconds": {"torch": faster, "replaced": 1.0},
        "peak": {"torch": 100, "replaced": peak},
        "losses": {"torch": [1.0, 0.5], "replaced": [1.0, 0.5005]},
    }


ABOUT, *CASES = read(training_page.RECORD)


def test_the_page_is_what_was_measured():
    assert training_page.PAGE.read_text() == training_page.page(ABOUT, *CASES), (
        "run benchmarks/training_page.py"
    )
    for suffix in (".svg", ".png"):
        assert training_page.PLOT.with_suffix(suffix).stat().st_size > 0


def test_figures():
    assert training_page.less(case(peak=85), held=50) == pytest.approx(0.1)
    assert training_page.distance(case()) == pytest.approx(0.001)
    assert training_page.limit(case(share=0.2)) == 1.25
    text = training_page.page(ABOUT, case(1.25, 85), case(1.0, 80))
    assert "| UNet | eager | 15% to 20% less | 1.00 to 1.25 | 1.11 |" in text


def test_the_plot_is_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    training_page.draw(CASES, tmp_path / "plot")
    assert {path.suffix for path in tmp_path.iterdir()} == {".svg", ".png"}


def losses_and_bytes(replaced, layout, dtype):
    """Returns two losses and the bytes that autograd keeps in a step, each storage once."""
    torch.manual_seed(0)
    model = UNet(width=16).to(memory_format=layout)
    if replaced:
        report = ot.replace(model)
        assert len(report.replaced) == 13
        assert list(report.left) == ["attention.norm"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data, losses = Data(2, 16), []
    for i in range(2):
        noisy, moment, noise = data(i, layout)
        kept = {}

        def keep(x, kept=kept):
            kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        half = torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16)
        with half, torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            loss = (model(noisy, moment).float() - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, sum(kept.values())


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_replaced_model_learns_the_same_and_keeps_less(layout, dtype):
    (plain, more), (ours, less) = (losses_and_bytes(r, layout, dtype) for r in (False, True))
    # each of 40 layers rounds once in its dtype
    step = torch.finfo(dtype).eps * 40
    assert all(abs(a - b) <= step * a for a, b in zip(plain, ours, strict=True))
    assert less < more

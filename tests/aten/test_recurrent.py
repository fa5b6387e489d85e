# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and bags of embeddings, with gradients, against torch in float64."""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import Refused, torch
from tests.aten.golden import FLOATS, call, close

rnn = torch.nn.utils.rnn
Tensor = torch.Tensor
T, B, F, H = 4, 3, 5, 6
# Rounding errors of every step are added up.
SLACK, HALF_SLACK = 4e-6, 4e-3


def like(expected: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    return [torch.empty(x.shape, dtype=dtype) for x in expected]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize(
    ("layers", "both", "batch_first", "bias", "lengths"),
    [
        (1, False, False, True, None),
        (2, True, True, True, None),
        (2, False, False, False, None),
        (1, False, False, False, [4, 4, 4]),
        (2, True, False, True, [4, 3, 1]),
    ],
)
def test_layers_and_their_gradients_are_those_of_torch(
    kind, layers, both, batch_first, bias, lengths, dtype
):
    """With lengths as packed sequences, whose padding may hold anything."""
    torch.manual_seed(0)
    slack = SLACK if dtype == torch.float32 else HALF_SLACK
    cells = layers * (2 if both else 1)
    model = getattr(torch.nn, kind)(F, H, layers, bias, batch_first, bidirectional=both)
    model = model.to(dtype).double()
    params = [p.detach().to(dtype) for p in model.parameters()]
    x = torch.randn((B, T, F) if batch_first else (T, B, F)).to(dtype)
    states = [torch.randn(cells, B, H).to(dtype) for _ in range(2 if kind == "LSTM" else 1)]
    wide = [t.double().requires_grad_() for t in (x, *states)]
    packed = wide[0] if lengths is None else rnn.pack_padded_sequence(wide[0], lengths)
    y, last = model(packed, tuple(wide[1:]) if kind == "LSTM" else wide[1])
    y = y if lengths is None else rnn.pad_packed_sequence(y)[0]
    results = [y, *(last if kind == "LSTM" else [last])]
    saved = [[torch.empty(T, B, H, dtype=dtype) for _ in range(cells)]
             for _ in range(7 if kind == "LSTM" else 5)]  # fmt: skip
    form = (bias, layers, 0.0, True, both, batch_first)
    hx = states if kind == "LSTM" else states[0]
    sizes = None
    if lengths is not None:
        sizes = packed.batch_sizes
        x = with_padding(x, sizes).flatten(0, 1)
    got = call(f"aclnn{kind}", x, params, hx, sizes, *form, *like(results, dtype), *saved)
    close(got[: len(results)], results, slack)

    out = [torch.randn(r.shape).to(dtype) for r in results]
    expected = torch.autograd.grad(results, [*wide, *model.parameters()], [g.double() for g in out])
    made = like(list(expected), dtype)
    if lengths is not None:
        out[0], made[0] = with_padding(out[0], sizes).flatten(0, 1), torch.empty_like(x)
    to = (*made[: len(wide)], made[len(wide) :])
    if kind == "LSTM":
        back = call("aclnnLstmBackward", x, states, params, *out, *saved, sizes, *form, None, *to)
    else:
        back = call("aclnnGRUBackward", x, params, hx, *out, *saved, sizes, bias, layers, both,
                    batch_first, *to)  # fmt: skip
    back[0] = back[0].reshape(expected[0].shape)
    close(back, list(expected), slack)


def with_padding(x: Tensor, sizes: Tensor) -> Tensor:
    return x.where((torch.arange(B) < sizes[:, None])[..., None], float("nan"))


def test_without_training_nothing_is_saved_and_states_begin_with_zeros():
    x, model = torch.randn(T, B, F), torch.nn.LSTM(F, H)
    y, (h, c) = model(x)
    params = [p.detach() for p in model.parameters()]
    # Lists may have tensors without dims, as those of torch_npu.
    for saved in (None, [torch.empty(())]):
        got = call("aclnnLSTM", x, params, None, None, True, 1, 0.5, False, False, False,
                   *like([y, h, c], x.dtype), *[saved] * 7)  # fmt: skip
        close(got[:3], [y, h, c], SLACK)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({1: [torch.ones(24, F)]}, "params must have 4 tensors"),
        ({1: [torch.ones(24, F), torch.ones(24, H), torch.ones(24), torch.ones(23)]},
         r"params\[3\] must have shape \[24\], but got \[23\]"),
        ({2: [torch.ones(1, B, H)]}, "hx must have 2 tensors, h0 and c0, but has 1"),
        ({2: [torch.ones(2, B, H)] * 2}, r"[hc]0 must have shape \[1, 3, 6\], but got \[2, 3, 6\]"),
        ({3: torch.tensor([3, 3])}, "input must have 2 steps, as batchSizes has"),
        ({3: torch.tensor([2, 2, 2, 2])}, "batchSizes must go down from 3 and stay above 0"),
        ({3: torch.tensor([3, 1, 2, 1])}, "batchSizes must go down from 3 and stay above 0"),
        ({3: torch.tensor([3, 3, 3, 0])}, "batchSizes must go down from 3 and stay above 0"),
        ({3: torch.tensor([3, 3, 3, 3]), 9: True}, "batchFirst must be false with batchSizes"),
        ({5: 0}, "numLayers must be from 1"),
        ({5: 2, 6: 0.5}, "dropout must be 0 in training, but got 0.5"),
        ({13: [torch.empty(T, B, 1)]}, r"iOut\[0\] must have shape"),
    ],
)  # fmt: skip
def test_layers_that_do_not_fit_are_refused(changed, sentence):
    params = [torch.ones(24, F), torch.ones(24, H), torch.ones(24), torch.ones(24)]
    values = [torch.ones(T, B, F), params, None, None, True, 1, 0.0, True, False, False,
              torch.empty(T, B, H), torch.empty(1, B, H), torch.empty(1, B, H),
              *[None] * 7]  # fmt: skip
    for i, value in changed.items():
        values[i] = value
    with pytest.raises(Refused, match=sentence):
        call("aclnnLSTM", *values)


def gates(i: Tensor, h: Tensor, c: Tensor, *biases: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a, f, g, o = (i + h + sum(biases)).chunk(4, 1)
    a, f, g, o = a.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    after = f * c + a * g
    return o * after.tanh(), after, torch.cat([a, f, g, o], 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_step_of_an_lstm_and_its_gradient(dtype):
    torch.manual_seed(0)
    given = [torch.randn(s).to(dtype) for s in ((B, 4 * H), (B, 4 * H), (B, H), 4 * H, 4 * H)]
    wide = [t.double().requires_grad_() for t in given]
    expected = gates(*wide)
    got = call("aclnnThnnFusedLstmCell", *given, *like(list(expected), dtype))
    close(got, list(expected), 2e-6)
    dh, dc = torch.randn(B, H).to(dtype), torch.randn(B, H).to(dtype)
    gradient = torch.autograd.grad(
        expected[:2], [wide[0], wide[2], wide[3]], [dh.double(), dc.double()]
    )
    back = call("aclnnThnnFusedLstmCellBackward", dh, dc, given[2], got[1], got[2], True,
                *like(list(gradient), dtype))  # fmt: skip
    # From gates and states that are rounded.
    close(back, list(gradient), 8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", FLOATS)
def test_bags_of_embeddings(dtype, index, mode):
    torch.manual_seed(0)
    weight = torch.randn(9, 4).to(dtype)
    bags = [[0, 8, 3], [], [5], [1, 1, 2, 7]]
    indices = torch.tensor([i for bag in bags for i in bag], dtype=index)
    offsets = torch.tensor([0, 3, 3, 4], dtype=index)
    scales = torch.rand(8).to(dtype) if mode == 0 else None
    rows, largest = [], []
    start = 0
    for bag in bags:
        chosen = weight[bag].double()
        if scales is not None:
            chosen = chosen * scales[start : start + len(bag)].double()[:, None]
        start += len(bag)
        empty = torch.zeros(4, dtype=torch.float64)
        rows.append((chosen.sum(0), chosen.mean(0), chosen.amax(0) if bag else empty)[mode]
                    if bag else empty)  # fmt: skip
        largest.append([bag[i] for i in chosen.argmax(0)] if bag else [-1] * 4)
    outputs = [torch.empty(4, 4, dtype=dtype), torch.empty(8, dtype=index),
               torch.empty(4, dtype=index),
               torch.empty((4, 4) if mode == 2 else (4,), dtype=index)]  # fmt: skip
    got = call("aclnnEmbeddingBag", weight, indices, offsets, False, mode, False, scales, False, -1,
               *outputs)  # fmt: skip
    close(got[:1], [torch.stack(rows)], SLACK)
    assert got[1].tolist() == [0, 0, 0, 2, 3, 3, 3, 3]
    if mode == 2:
        filled = [i for i, bag in enumerate(bags) if bag]
        assert got[3][filled].tolist() == [largest[i] for i in filled]
    if mode == 1:
        assert got[2].tolist() == [3, 0, 1, 4]


def test_offsets_go_up_and_indices_are_rows():
    weight, outputs = torch.ones(3, 2), [torch.empty(2, 2), *torch.empty(3, 4).long()]
    for indices, offsets, last, sentence in (
        ([0, 1, 2, 0], [0, 5], False, "offsets must go from 0 up to at most 4"),
        ([0, 1, 2, 0], [1, 2], False, "offsets must go from 0 up"),
        ([0, 1, 2, 3], [0, 2], False, "indices"),
        ([0, 1, 2, 0], [0], True, "the last offset must be the number of indices, 4, but is 0"),
    ):
        with pytest.raises(Refused, match=sentence):
            call("aclnnEmbeddingBag", weight, torch.tensor(indices), torch.tensor(offsets), False,
                 0, False, None, last, -1, *outputs)  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Operators by type, by value: overlaps of boxes with gradients, suppression, regions. The expected
values are loops over numbers.
"""

from __future__ import annotations

import math

import acl
import pytest
import torch
from tests.npu.device.typed_calls import check, execute, numbers

BOXES = torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 6], [7, 7, 8, 9]])
TRUTH = torch.tensor([[1.0, 0, 5, 3], [0, 2, 5, 6], [9, 7, 10, 9]])


def corners(box, trans):
    if not trans:
        return box
    x, y, w, h = box
    return x - w / 2, y - h / 2, x + w / 2, y + h / 2


def overlap(kind, a, b, trans=False, iof=False):
    """Of two boxes of four numbers, which may be tensors that record gradients."""
    (ax, ay, az, at), (bx, by, bz, bt) = corners(a, trans), corners(b, trans)
    low, high = torch.minimum, torch.maximum
    both = (low(az, bz) - high(ax, bx)).clamp_min(0) * (low(at, bt) - high(ay, by)).clamp_min(0)
    areas = (az - ax) * (at - ay), (bz - bx) * (bt - by)
    union = sum(areas) - both
    iou = both / (areas[1] if iof else union)
    w, h = high(az, bz) - low(ax, bx), high(at, bt) - low(ay, by)
    if kind == "GIoU":
        return iou - (w * h - union) / (w * h)
    apart = ((bx + bz - ax - az) ** 2 + (by + bt - ay - at) ** 2) / 4
    distant = iou - apart / (w**2 + h**2)
    if kind == "DIoU":
        return distant
    v = 4 / math.pi**2 * turn(a, b, trans) ** 2
    return distant - v * v / (1 - iou + v)


def turn(a, b, trans=False):
    (ax, ay, az, at), (bx, by, bz, bt) = corners(a, trans), corners(b, trans)
    return torch.atan((bz - bx) / (bt - by)) - torch.atan((az - ax) / (at - ay))


def table(function, cross):
    pairs = [[function(a, b) for a in BOXES] for b in TRUTH] if cross else [
        [function(a, b) for a, b in zip(BOXES, TRUTH, strict=True)]]  # fmt: skip
    return torch.tensor(pairs)


def overlaps():
    for kind in ("GIoU", "DIoU", "CIoU"):
        for cross in (False, True):
            for mode in ("iou", "iof"):
                form = {"trans": False, "is_cross": cross, "mode": mode}
                found = table(lambda a, b, k=kind, m=mode: overlap(k, a, b, iof=m == "iof"), cross)
                more = [table(turn, cross)] if kind == "CIoU" else []
                yield kind, [BOXES.T, TRUTH.T], form, [found, *more]


def gradients():
    dy = numbers(3)
    for kind in ("GIoU", "DIoU", "CIoU"):
        a, b = BOXES.clone().requires_grad_(), TRUTH.clone().requires_grad_()
        # Widths and heights, so that no edges coincide.
        found = torch.stack([overlap(kind, p, q, trans=True) for p, q in
                             zip(a + 0.3, b + 0.7, strict=True)])  # fmt: skip
        da, db = torch.autograd.grad(found, (a, b), dy)
        form = {"trans": True, "is_cross": False, "mode": "iou"}
        more = [numbers(1, 3)] if kind == "CIoU" else []
        yield f"{kind}Grad", [dy, BOXES.T + 0.3, TRUTH.T + 0.7, *more], form, [da.T, db.T]


def iou(eps, iof):
    def one(a, b):
        w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        both = max(w, 0) * max(h, 0)
        areas = [(t[2] - t[0] + eps) * (t[3] - t[1] + eps) for t in (a, b)]
        return both / (areas[1] if iof else sum(areas) - both)

    return table(one, cross=True)


SCORED = torch.tensor([[0.0, 0, 10, 10, 0.9], [1, 1, 10, 10, 0.8], [20, 20, 30, 30, 0.7],
                       [0, 0, 9, 9, 0.6]])  # fmt: skip
SHUFFLED = torch.tensor([2, 0, 3, 1])
UPSIDE_DOWN = SCORED[SHUFFLED][:, [2, 3, 0, 1]]

# ---- regions: bilinear samples one by one ----

FEATURES = numbers(2, 3, 6, 5)
ROIS = torch.tensor([[0, 1.0, 2, 9, 8], [1, -3, -3, 4, 30], [1, 4, 4, 4, 4]])


def samples(start, extent, cells, count, size):
    """By cell: the pixels and their shares."""
    for cell in range(cells):
        shares = []
        for i in range(count):
            at = start + (cell * count + i + 0.5) * extent / (cells * count)
            if -1 <= at <= size:
                low = min(int(max(at, 0)), size - 1)
                part = 0 if low == size - 1 else max(at, 0) - low
                shares += [(low, (1 - part) / count), (min(low + 1, size - 1), part / count)]
        yield cell, shares


def aligned(features, mode, count):
    out = torch.zeros(3, 3, 2, 3)
    for k, (n, x0, y0, x1, y1) in enumerate(ROIS.tolist()):
        last = 1 if mode == 1 else 0
        w, h = ((b + last - a) * 0.5 for a, b in ((x0, x1), (y0, y1)))
        w, h = (max(w, 0), max(h, 0)) if mode == 1 else (max(w, 1), max(h, 1))
        taken = [count or max(math.ceil(e / c), 1) for e, c in ((h, 2), (w, 3))]
        for i, rows in samples(y0 * 0.5, h, 2, taken[0], 6):
            for j, columns in samples(x0 * 0.5, w, 3, taken[1], 5):
                for y, p in rows:
                    for x, q in columns:
                        out[k, :, i, j] = out[k, :, i, j] + p * q * features[int(n), :, y, x]
    return out


def regions():
    for mode in (0, 1):
        for count in (0, 2):
            form = {"spatial_scale": 0.5, "pooled_height": 2, "pooled_width": 3,
                    "sample_num": count, "roi_end_mode": mode}  # fmt: skip
            x = FEATURES.clone().requires_grad_()
            y = aligned(x, mode, count)
            yield "ROIAlign", [FEATURES, ROIS], form, [y.detach()]
            dy = numbers(*y.shape, seed=3)
            (dx,) = torch.autograd.grad(y, x, dy)
            yield "ROIAlignGrad", [dy, ROIS], form | {"xdiff_shape": [2, 3, 6, 5]}, [dx]


CASES = [
    *overlaps(),
    *gradients(),
    *(("Iou", [BOXES, TRUTH], {"mode": mode, "eps": 0.01}, [iou(0.01, mode == "iof")])
      for mode in ("iou", "iof")),
    ("NMSWithMask", [SCORED[SHUFFLED]], {"iou_threshold": 0.5},
     [SCORED, SHUFFLED.argsort().int(), torch.tensor([1, 0, 1, 0], dtype=torch.uint8)]),
    ("NonMaxSuppressionV4", [UPSIDE_DOWN, SCORED[SHUFFLED, 4], torch.tensor(5, dtype=torch.int32),
                             torch.tensor(0.5), torch.tensor(0.65)],
     {"pad_to_max_output_size": True},
     [torch.tensor([1, 0, 0, 0, 0], dtype=torch.int32), torch.tensor(2, dtype=torch.int32)]),
    *regions(),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_type_by_value(case):
    check(case)


@pytest.mark.parametrize(
    ("name", "inputs", "values", "sentence"),
    [
        ("GIoU", [BOXES.T, TRUTH[:2].T], {"trans": False, "is_cross": False, "mode": "iou"},
         "gtboxes must have the shape of bboxes, [4, 3], unless is_cross"),
        ("DIoU", [BOXES.T, TRUTH.T], {"trans": False, "is_cross": False, "mode": "ios"},
         "mode must be iou or iof, but is ios"),
        ("ROIAlign", [FEATURES, ROIS + 2], {"spatial_scale": 0.5, "pooled_height": 2,
         "pooled_width": 3, "sample_num": 2, "roi_end_mode": 0},
         "images of regions must be in [0, 1], but one is 2"),
        ("ROIAlign", [FEATURES, ROIS * 1e9], {"spatial_scale": 0.5, "pooled_height": 2,
         "pooled_width": 3, "sample_num": 0, "roi_end_mode": 0}, "bins at most 65536 pixels"),
    ],
)  # fmt: skip
def test_a_refusal(name, inputs, values, sentence):
    shape = (3, 3, 2, 3) if name == "ROIAlign" else (1, 3)
    status = execute(name, [t.contiguous().npu() for t in inputs], [torch.zeros(shape).npu()],
                     **values)  # fmt: skip
    assert status == 161002, acl.get_recent_err_msg()
    assert sentence in acl.get_recent_err_msg()

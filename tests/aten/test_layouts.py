# SPDX-License-Identifier: Apache-2.0
"""Every function that ATen computes has the same results whatever the strides of its inputs: on
broadcast, transposed and gapped views against contiguous ones, and where in-place rows read what
they write.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import Library, Refused, Sample, arguments, samples, torch

Tensor = torch.Tensor


def transposed(x: Tensor) -> Tensor:
    return x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() > 1 else x


def gapped(x: Tensor) -> Tensor:
    """Every second element of memory that begins before it."""
    room = torch.zeros([3, *x.shape, 2], dtype=x.dtype)[1, ..., 0]
    return room.copy_(x)


def broadcast(dim: int) -> Callable[[Tensor], Tensor]:
    def made(x: Tensor) -> Tensor:
        if x.dim() == 0 or x.numel() == 0 or x.dtype == torch.bool:
            return x
        return x.narrow(dim, 0, 1).expand_as(x)

    return made


VIEWS = {
    "transposed": (transposed, transposed), "gapped": (gapped, gapped),
    "broadcast first": (broadcast(0), lambda x: x), "broadcast last": (broadcast(-1), lambda x: x),
}  # fmt: skip


def near(a: Tensor, b: Tensor) -> bool:
    """Layouts may change the order of sums."""
    if not a.dtype.is_floating_point and not a.dtype.is_complex:
        return torch.equal(a, b)
    scale = b.abs()[b.isfinite()].max().item() if b.isfinite().any() else 1.0
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5 * max(scale, 1e-30), equal_nan=True)


def viewed(sample: Sample, inputs, outputs, dtype=torch.float32, contiguous: bool = False) -> list:
    written = {
        i
        for i, p in enumerate(sample.row.given)
        if p.written or (sample.row.inplace and i == 0) or p.name.startswith("running")
    }
    values = arguments(sample, dtype, dtype)

    def made(i: int, value):
        if isinstance(value, list) and value and isinstance(value[0], Tensor):
            return [made(i, one) for one in value]
        if not isinstance(value, Tensor):
            return value
        if i in written:
            return value if contiguous else outputs(value)
        return inputs(value).contiguous() if contiguous else inputs(value)

    return [made(i, value) for i, value in enumerate(values)]


def overlapping(sample: Sample, dtype=torch.float32) -> tuple[list, list] | None:
    """The call of an in-place row whose other operands begin one element after self in the same
    memory, and the same call with operands apart.
    """
    values = arguments(sample, dtype, dtype)
    self = values[0]
    if not isinstance(self, Tensor) or self.dim() == 0 or self.numel() < 2:
        return None

    def of_self(x) -> bool:
        return isinstance(x, Tensor) and x.shape == self.shape and x.dtype == self.dtype

    if not any(map(of_self, values[1:])):
        return None
    room = torch.cat([self.flatten(), self.flatten()[:1]])
    self, other = (room[i:].as_strided(self.shape, self.stride()) for i in (0, 1))
    together = [self, *(other if of_self(x) else x for x in values[1:])]
    apart = [x.clone() if isinstance(x, Tensor) else x for x in together]
    return together, apart


def is_in_place(sample: Sample) -> bool:
    """Self is the only one that is written: what several results overlap is nobody's order."""
    written = [i for i, p in enumerate(sample.row.given) if p.written]
    return written == ([] if sample.row.inplace else [0])


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


# What depends on the last bits: a singular matrix; and outputs that get the shape of the result.
ILL = {"aclnnLogdet", "aclnnSlogdet"}
SIZED = {
    "aclnnMaskedSelect", "aclnnNonzero", "aclnnNonzeroV2", "aclnnUnique", "aclnnUnique2",
    "aclnnUniqueConsecutive", "aclnnUniqueDim",
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.programs
def test_the_strides_of_inputs_and_outputs_do_not_matter(library, name):
    inputs, outputs = VIEWS[name]
    failed, compared = [], 0
    for sample in samples():
        same = sample.row.name in SIZED
        if sample.row.name in ILL:
            continue
        try:
            expected = library(sample.row, viewed(sample, inputs, outputs, contiguous=True))
        except Refused:  # as broadcast values are no permutation, for example
            continue
        given = viewed(sample, inputs, (lambda x: x) if same else outputs)
        try:
            got = library(sample.row, given)
        except Refused as refusal:
            failed.append(f"{sample}: {refusal}")
            continue
        compared += 1
        if not all(map(near, got, expected)):
            failed.append(str(sample))
    assert failed == []
    assert compared > 0.8 * len(samples())


def different(library, pair_of) -> tuple[list[str], int]:
    """The samples whose first result is another one where memory is shared, and how many were
    compared. pair_of: the call that shares memory and the same call with that apart, or None.
    """
    failed, compared = [], 0
    for sample in samples():
        if (pair := pair_of(sample)) is None:
            continue
        try:
            expected = library(sample.row, pair[1])
            got = library(sample.row, pair[0])
        except Refused:
            continue
        compared += 1
        if not near(got[0], expected[0]):
            failed.append(str(sample))
    return failed, compared


def test_operands_that_overlap_self_are_read_before_self_is_written(library):
    failed, compared = different(library, lambda s: overlapping(s) if is_in_place(s) else None)
    assert failed == []
    assert compared > 30


def sharing(sample: Sample, shift: int) -> tuple[list, list] | None:
    """The call whose only output begins `shift` elements after an input in the same memory, and
    the same call with that apart.
    """
    values = arguments(sample, torch.float32, torch.float32)
    written = [i for i, p in enumerate(sample.row.given) if p.written]
    if len(written) != 1 or not isinstance(values[written[0]], Tensor):
        return None
    out = values[written[0]]
    for i, x in enumerate(values):
        alike = isinstance(x, Tensor) and x.shape == out.shape and x.dtype == out.dtype
        if i == written[0] or not alike or x.numel() < 2:
            continue
        room = torch.cat([x.flatten(), x.flatten()[:shift]])
        together, apart = list(values), list(values)
        together[i], apart[i] = room[: x.numel()].view(x.shape), x.clone()
        together[written[0]] = room[shift:].view(x.shape)
        apart[written[0]] = torch.empty_like(x, memory_format=torch.contiguous_format)
        return together, apart
    return None


@pytest.mark.parametrize("shift", [0, 1])
def test_an_output_may_share_memory_with_an_input(library, shift):
    """Kernels that write the output themselves must not read what they have written."""
    left_out = SIZED | ILL
    failed, compared = different(
        library, lambda s: None if s.row.name in left_out else sharing(s, shift)
    )
    assert failed == []
    assert compared > 100


def test_a_matrix_takes_its_transpose(library):
    row = next(sample.row for sample in samples() if sample.row.name == "aclnnInplaceCopy")
    x = torch.arange(20.0).reshape(4, 5)[:, :4]
    expected = x.t().clone()
    library(row, [x, x.t()])
    assert torch.equal(x, expected)


def test_values_of_an_assignment_by_index_may_be_part_of_self(library):
    rows = {sample.row.name: sample.row for sample in samples()}
    x = torch.arange(6.0)
    library(rows["aclnnIndexPutImpl"], [x, [torch.tensor([1, 2, 3, 4, 5])], x[:5], False, False])
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x = torch.arange(6.0)
    library(rows["aclnnScatterNdUpdate"], [x, torch.tensor([[1], [2], [3], [4], [5]]), x[:5]])
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


def test_an_output_may_lie_where_the_input_is_read_later(library):
    row = next(sample.row for sample in samples() if sample.row.name == "aclnnSlice")
    x = torch.arange(6.0)
    library(row, [x, 0, 0, 5, 1, x[1:]])
    assert x.tolist() == [0, 0, 1, 2, 3, 4]

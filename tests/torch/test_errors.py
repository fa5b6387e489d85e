# SPDX-License-Identifier: Apache-2.0
"""What is refused, in sentences with the names of Python, from kernels and from fakes."""

from __future__ import annotations

import pytest
from tests.support import all_rows, either, rows
from tests.torch.torch_support import TORCH, arguments, call, operator, tensors, torch

import openaclnn
import openaclnn.torch as ot
from openaclnn.torch.dtypes import plain

o = torch.ops.openaclnn
DENSE = "must be a dense tensor in CPU or CUDA memory, but is "


def refused(function) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        function()
    return str(caught.value)


STRANGE = {
    "sparse": (lambda x: x.to_sparse(), "one of layout torch.Sparse"),
    "csr": (lambda x: x.to_sparse_csr(), "one of layout torch.SparseCsr"),
    "mkldnn": (lambda x: x.to_mkldnn(), "one of layout torch.Mkldnn"),
    "nested": (lambda x: torch.nested.nested_tensor([x, x[:1]]), "a nested one"),
    "quantised": (
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        "a quantised one",
    ),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:The PyTorch API of nested")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("op", rows(lambda op: not op.inplace))
def test_tensors_of_another_kind(op, kind):
    make, what = STRANGE[kind]
    for i, p in enumerate(op.input_tensors):
        inputs = [torch.rand(2, 3) for _ in op.input_tensors]
        inputs[i] = make(inputs[i])
        message = refused(lambda inputs=inputs: call(op, inputs))
        assert message == f"{op.python}: {p.python_name} {DENSE}{what}"


@pytest.mark.parametrize("op", all_rows())
def test_jagged_tensors(op):
    """torch's class of them raised NotImplementedError with the name of the operator alone."""
    jagged = torch.nested.nested_tensor([torch.rand(2, 3), torch.rand(1, 3)], layout=torch.jagged)
    for i, p in enumerate(op.input_tensors):
        inputs = [torch.rand(2, 3) for _ in op.input_tensors]
        inputs[i] = jagged
        message = refused(lambda inputs=inputs: call(op, inputs))
        assert message == f"{op.python}: {p.python_name} {DENSE}a nested one"
    if not op.inplace:
        outs = {a.name: jagged for a in operator(op, "out")._schema.arguments if a.kwarg_only}
        message = refused(lambda: operator(op, "out")(*arguments(op, tensors(op, "FLOAT")), **outs))
        assert message == f"{op.python}: {next(iter(outs))} {DENSE}a nested one"


@pytest.mark.parametrize("op", all_rows())
def test_dtypes(op):
    names = [plain(TORCH[d]) for d in ("FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16") if d in op.dtypes]
    known = (torch.int32, torch.bool, torch.uint16, torch.complex64, torch.float8_e5m2)
    for dtype in (*known, torch.float8_e4m3fnuz):
        inputs = [x.to(dtype) for x in tensors(op, "FLOAT")]
        first = op.input_tensors[0].python_name
        message = refused(lambda inputs=inputs: call(op, inputs))
        if dtype not in known:
            what = f"{first} must have a dtype of the aclnn API, but got {plain(dtype)}"
        else:
            where = f"on {openaclnn.products()[1].title}"
            what = f"{first} must have dtype {either(names)} {where}, but got {plain(dtype)}"
        assert message == f"{op.python}: {what}"
        imagined = [x.to("meta") for x in inputs]
        early = refused(lambda imagined=imagined: operator(op)(*arguments(op, imagined)))
        assert early == message


@pytest.mark.parametrize("op", rows(lambda op: op.shapes == "same" and len(op.input_tensors) > 1))
def test_shapes(op):
    first, other = (p.python_name for p in op.input_tensors)
    inputs = [torch.rand(2, 3), torch.rand(3)]
    sentence = f"{op.python}: {other} must have the shape of {first} [2, 3], but got [3]"
    assert refused(lambda: call(op, inputs)) == sentence
    assert refused(lambda: call(op, [x.to("meta") for x in inputs])) == sentence


def test_sentences_have_the_names_of_python():
    x, w = torch.rand(2, 6, 4), torch.rand(6)
    assert refused(lambda: o.leaky_relu_backward(x, x, -0.5, True)) == (
        "leaky_relu_backward: negative_slope must be at least 0 when self_is_result is true, "
        "but got -0.5"
    )
    assert refused(lambda: o.group_norm_swish(x, w, w, 4)) == (
        "group_norm_swish: num_groups must divide the 6 channels of x, but got 4"
    )
    message = refused(lambda: o.group_norm_swish(x, w, w, 3, "NHWC"))
    assert message.startswith("group_norm_swish: data_format must be ")
    assert message.endswith('but got "NHWC"')
    assert refused(lambda: o.group_norm_swish(x, w[:2], w, 3)) == (
        "group_norm_swish: gamma must have shape [6], the channels of x [2, 6, 4], but got [2]"
    )
    assert refused(lambda: o.leaky_relu(x, 1j)) == (
        "leaky_relu: negative_slope must be a real number, but is complex"
    )
    assert refused(lambda: o.leaky_relu(x, 0.1, out=torch.empty(3))) == (
        "leaky_relu: out must have the shape of x [2, 6, 4], but got [3]"
    )
    y = torch.rand(5)
    assert refused(lambda: o.leaky_relu(y[:4], 0.1, out=y[1:])) == (
        "leaky_relu: out must be the same view as x or share no memory with it, but overlaps it"
    )


def test_products_decide_here_too():
    openaclnn.set_product("910")
    assert refused(lambda: o.logit(torch.rand(3))).startswith("logit: the product must be ")
    assert refused(lambda: o.elu(torch.rand(3).bfloat16())) == (
        "elu: x must have dtype float32, float16 or float64 on Atlas training series, "
        "but got bfloat16; OPENACLNN_PRODUCT=any accepts it"
    )


def test_lazy_views_are_resolved():
    lazy = torch.randn(4, dtype=torch.complex64).conj().imag
    assert lazy.is_neg()
    assert torch.equal(o.leaky_relu(lazy, 0.5), torch.nn.functional.leaky_relu(lazy, 0.5))
    zero = torch._efficientzerotensor((3,))
    assert torch.equal(o.leaky_relu(zero, 0.5), torch.zeros(3))


# A call of a function of openaclnn.torch, and what it says with the names of its arguments.
FUNCTIONS = {
    "input None": (lambda: ot.leaky_relu(None), "input must be a torch tensor, but got None"),
    "a module": (lambda: ot.ELU()(3.0), "input must be a torch tensor, but got float"),
    "a list": (lambda: ot.group_norm_swish([1.0], 2), "input must be a torch tensor, but got list"),
    "a text": (lambda: ot.leaky_relu(V, "a"), "negative_slope must be a number, but got str"),
    "eps": (lambda: ot.logit(V, "a"), "eps must be a number, but got str"),
    "a tensor": (lambda: ot.hardshrink(V, [0.5]), "lambd must be a number, but got list"),
    "groups": (
        lambda: ot.group_norm_swish(IMAGES, 2.0),
        "num_groups must be an integer, but got float",
    ),
    "weight": (
        lambda: ot.group_norm_swish(IMAGES, 2, 5),
        "weight must be a torch tensor, but got int",
    ),
    "a vector": (
        lambda: ot.group_norm_swish(V, 2),
        "input must have at least 2 dimensions, but has shape [3]",
    ),
    "a wrong weight": (
        lambda: ot.group_norm_swish(IMAGES, 2, IMAGES),
        "weight must have 1 dimension, but got 3",
    ),
    "sparse": (
        lambda: ot.elu(torch.eye(2).to_sparse()),
        f"input {DENSE}one of layout torch.Sparse",
    ),
    "no groups": (
        lambda: ot.group_norm_swish(IMAGES, 3),
        "num_groups must divide the 4 channels of input, but got 3",
    ),
}
V, IMAGES = torch.ones(3), torch.ones(2, 4, 5)


@pytest.mark.parametrize("what", FUNCTIONS)
def test_functions_name_their_own_arguments(what):
    function, sentence = FUNCTIONS[what]
    with pytest.raises((TypeError, ValueError)) as caught:
        function()
    name, _, message = str(caught.value).partition(": ")
    assert message == sentence
    assert name in ("leaky_relu", "elu", "hardshrink", "logit", "group_norm_swish")


def test_none_among_tensors():
    message = refused(lambda: o.group_norm_swish(IMAGES, None, torch.ones(4), 2))
    assert message == f"group_norm_swish: gamma {DENSE}None"


@pytest.mark.parametrize("op", rows(lambda op: len(op.input_tensors) > 1))
def test_none_while_a_gradient_is_recorded(op):
    """What the schema takes as None is refused by the sentence that it has without a gradient."""
    inputs = [x.clone().requires_grad_() for x in tensors(op, "FLOAT")]
    for i in range(1, len(inputs)):
        given = [*inputs[:i], None, *inputs[i + 1 :]]
        plain_inputs = [None if x is None else x.detach() for x in given]
        with pytest.raises((ValueError, RuntimeError)) as recorded:
            call(op, given)
        with pytest.raises((ValueError, RuntimeError)) as computed:
            call(op, plain_inputs)
        assert str(recorded.value) == str(computed.value)
        assert "None" in str(recorded.value)


def test_other_errors_stay_as_they_are():
    x = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        ot.elu(x, inplace=True)

// SPDX-License-Identifier: Apache-2.0
// Operators with one element of the result for each element of the arguments, and operators that
// fill.
#include "calls.h"
// The headers that the client includes for these.
#include "aclnnop/aclnn_abs.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_addcdiv.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_clamp.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_cos.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_eq_tensor.h"
#include "aclnnop/aclnn_exp.h"
#include "aclnnop/aclnn_fill_scalar.h"
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_v2.h"
#include "aclnnop/aclnn_gt_scalar.h"
#include "aclnnop/aclnn_hardsigmoid.h"
#include "aclnnop/aclnn_hardswish.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "aclnnop/aclnn_log.h"
#include "aclnnop/aclnn_logical_not.h"
#include "aclnnop/aclnn_masked_fill_scalar.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_neg.h"
#include "aclnnop/aclnn_pow.h"
#include "aclnnop/aclnn_pow_tensor_tensor.h"
#include "aclnnop/aclnn_relu.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_sign.h"
#include "aclnnop/aclnn_silu.h"
#include "aclnnop/aclnn_sin.h"
#include "aclnnop/aclnn_softplus.h"
#include "aclnnop/aclnn_sqrt.h"
#include "aclnnop/aclnn_sub.h"
#include "aclnnop/aclnn_tanh.h"
#include "aclnnop/aclnn_threshold.h"
#include "aclnnop/aclnn_zero.h"

namespace {

const Dims kShape = {3, 5};

Numbers map(const Numbers& x, const std::function<double(double)>& f) {
  Numbers made;
  for (const double v : x) made.push_back(f(v));
  return made;
}

Numbers map(const Numbers& x, const Numbers& y, const std::function<double(double, double)>& f) {
  Numbers made;
  for (size_t i = 0; i < x.size(); ++i) made.push_back(f(x[i], y[i % y.size()]));
  return made;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void of_one() {
  const Numbers x = random_numbers(15), positive = random_numbers(15, 0.0625, 4);
#define ONE(op, values, dtype, ...)                                                        \
  {                                                                                        \
    const Array self(kShape, values, dtype), out(kShape, dtype);                           \
    CALL(op, self, out);                                                                   \
    expect("aclnn" #op, out, map(values, [](double v) -> double { return __VA_ARGS__; })); \
  }
  for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16}) {
    ONE(Abs, x, dtype, std::abs(v))
    ONE(Neg, x, dtype, -v)
    ONE(Relu, x, dtype, v > 0 ? v : 0)
    ONE(Sign, x, dtype, v > 0 ? 1 : v < 0 ? -1 : 0)
    ONE(Exp, x, dtype, std::exp(v))
    ONE(Sin, x, dtype, std::sin(v))
    ONE(Cos, x, dtype, std::cos(v))
    ONE(Tanh, x, dtype, std::tanh(v))
    ONE(Sigmoid, x, dtype, sigmoid(v))
    ONE(Silu, x, dtype, v * sigmoid(v))
    ONE(Hardswish, x, dtype, v * std::min(std::max(v + 3, 0.0), 6.0) / 6)
    ONE(Hardsigmoid, x, dtype, std::min(std::max(v + 3, 0.0), 6.0) / 6)
    ONE(Log, positive, dtype, std::log(v))
    ONE(Sqrt, positive, dtype, std::sqrt(v))
  }
#undef ONE
  // erf loses digits where 1 + erf(x) is small: the bound is of x itself.
  const Array self(kShape, x), gelu(kShape), gelu_v2(kShape);
  const auto exact = map(x, [](double v) { return v * std::erfc(-v / std::sqrt(2)) / 2; });
  CALL(Gelu, self, gelu);
  expect("aclnnGelu", gelu, exact, 4, map(x, [](double v) { return std::abs(v); }));
  CALL(GeluV2, self, 0, gelu_v2);
  expect("aclnnGeluV2", gelu_v2, exact, 4, map(x, [](double v) { return std::abs(v); }));

  const Array bits(kShape, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, ACL_BOOL);
  const Array flipped(kShape, ACL_BOOL);
  CALL(LogicalNot, bits, flipped);
  expect("aclnnLogicalNot", flipped, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
}

void in_place() {
  const Numbers x = random_numbers(15);
  const Array angle(kShape, x), angle2(kShape, x), power(kShape, x);
  CALL(InplaceSin, angle);
  expect("aclnnInplaceSin", angle, map(x, [](double v) { return std::sin(v); }));
  CALL(InplaceCos, angle2);
  expect("aclnnInplaceCos", angle2, map(x, [](double v) { return std::cos(v); }));
  CALL(InplaceExp, power);
  expect("aclnnInplaceExp", power, map(x, [](double v) { return std::exp(v); }));
  CALL(InplaceFillScalar, power, Scalar(1.5f));
  expect("aclnnInplaceFillScalar", power, Numbers(15, 1.5), 0);
  CALL(InplaceZero, power);
  expect("aclnnInplaceZero", power, Numbers(15, 0), 0);
  CALL(InplaceCopy, power, angle2);
  expect("aclnnInplaceCopy", power, angle2.read(), 0);
}

void of_two() {
  const Numbers x = random_numbers(15), y = random_numbers(15, 1, 3), row = random_numbers(5, 1, 3);
  const Scalar two(2);
  for (const aclDataType other : {ACL_FLOAT, ACL_FLOAT16}) {  // mixed dtypes are promoted
    const Array a(kShape, x), b(kShape, y, other), c({5}, row, other), out(kShape);
    CALL(Add, a, b, two, out);
    expect("aclnnAdd", out, map(x, y, [](double v, double w) { return v + 2 * w; }), 1);
    CALL(Sub, a, c, two, out);
    expect("aclnnSub", out, map(x, row, [](double v, double w) { return v - 2 * w; }), 1);
    CALL(Mul, a, b, out);
    expect("aclnnMul", out, map(x, y, [](double v, double w) { return v * w; }), 1);
    CALL(Div, a, c, out);
    expect("aclnnDiv", out, map(x, row, [](double v, double w) { return v / w; }), 1);
    const Array sum(kShape, x), difference(kShape, x), times(kShape, x), quotient(kShape, x);
    CALL(InplaceAdd, sum, b, two);
    expect("aclnnInplaceAdd", sum, map(x, y, [](double v, double w) { return v + 2 * w; }), 1);
    CALL(InplaceSub, difference, b, two);
    expect("aclnnInplaceSub", difference, map(x, y, [](double v, double w) { return v - 2 * w; }),
           1);
    CALL(InplaceMul, times, b);
    expect("aclnnInplaceMul", times, map(x, y, [](double v, double w) { return v * w; }), 1);
    CALL(InplaceDiv, quotient, b);
    expect("aclnnInplaceDiv", quotient, map(x, y, [](double v, double w) { return v / w; }), 1);
  }
  const Array a(kShape, x), b(kShape, y), power(kShape, y), equal(kShape, ACL_BOOL);
  CALL(InplacePowTensorTensor, power, a);
  expect("aclnnInplacePowTensorTensor", power,
         map(y, x, [](double v, double w) { return std::pow(v, w); }));
  CALL(EqTensor, a, b, equal);
  expect("aclnnEqTensor", equal, map(x, y, [](double v, double w) { return v == w; }), 0);
  const Array filled(kShape, x), mask(kShape, Numbers{1, 0, 0, 1}, ACL_BOOL), quotient(kShape);
  CALL(InplaceMaskedFillScalar, filled, mask, two);
  Numbers masked = x;
  masked[0] = masked[3] = 2;
  expect("aclnnInplaceMaskedFillScalar", filled, masked, 0);
  CALL(Addcdiv, a, a, b, two, quotient);
  expect("aclnnAddcdiv", quotient, map(x, y, [](double v, double w) { return v + 2 * v / w; }));
}

void with_numbers() {
  const Numbers x = random_numbers(15);
  const Array a(kShape, x), out(kShape), yes(kShape, ACL_BOOL);
  const Scalar half(0.5f), three(3), low(-1), high(1), zero(0);
#define NUMBER(op, ...) \
  expect("aclnn" #op, out, map(x, [](double v) -> double { return __VA_ARGS__; }), 4);
  CALL(Muls, a, half, out);
  NUMBER(Muls, v * 0.5)
  CALL(Clamp, a, low, high, out);
  NUMBER(Clamp, std::min(std::max(v, -1.0), 1.0))
  CALL(ClampMin, a, low, out);
  NUMBER(ClampMin, std::max(v, -1.0))
  CALL(LeakyRelu, a, half, out);
  NUMBER(LeakyRelu, v > 0 ? v : v / 2)
  CALL(Elu, a, half, half, half, out);
  NUMBER(Elu, v > 0 ? 0.5 * v : 0.25 * std::expm1(0.5 * v))
  CALL(Softplus, a, half, three, out);
  NUMBER(Softplus, 0.5 * v > 3 ? v : std::log1p(std::exp(0.5 * v)) / 0.5)
  CALL(PowScalarTensor, three, a, out);
  NUMBER(PowScalarTensor, std::pow(3, v))
#undef NUMBER
  CALL(GtScalar, a, half, yes);
  expect("aclnnGtScalar", yes, map(x, [](double v) { return v > 0.5; }), 0);
#define CHANGE(op, f, ...)                                                     \
  {                                                                            \
    const Array own(kShape, x);                                                \
    CALL(op, own, __VA_ARGS__);                                                \
    expect("aclnn" #op, own, map(x, [](double v) -> double { return f; }), 1); \
  }
  CHANGE(InplaceMuls, v * 0.5, half)
  CHANGE(InplaceAdds, v + 1.5, three, half)
  CHANGE(InplaceSubs, v - 1.5, three, half)
  CHANGE(InplaceDivs, v / 3, three)
  CHANGE(InplaceClampMax, std::min(v, 0.5), half)
  CHANGE(InplaceThreshold, v > 0 ? v : 0, zero, zero)
#undef CHANGE
  const Array narrow(kShape, ACL_FLOAT16), integers(kShape, ACL_INT32);
  CALL(Cast, a, ACL_FLOAT16, narrow);
  expect("aclnnCast", narrow, x, 0);
  CALL(Cast, a, ACL_INT32, integers);
  expect("aclnnCast", integers, map(x, [](double v) { return std::trunc(v); }), 0);
}

}  // namespace

void elementwise() {
  of_one();
  in_place();
  of_two();
  with_numbers();
}

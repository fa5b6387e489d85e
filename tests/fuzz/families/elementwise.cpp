// SPDX-License-Identifier: Apache-2.0
// Element-wise rows: compares every element with the formula in long double.
#include <cstdio>
#include <string>

#include "families.inc"
#include "formulas.h"

namespace fuzz {
namespace {

void check(const Case& c, const std::vector<Given>& plain) {
  const Entry* const formula = formula_of(c.row->kernel);
  if (formula == nullptr) return;
  const auto& parameters = c.row->parameters;
  Dims shape;
  double attributes[8] = {};
  long double inputs[8] = {};
  size_t numbers = 0;
  bool wide = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool input = parameters[i].kind == Kind::tensor && parameters[i].role != Role::output;
    wide |= input && plain[i].dtype == ACL_DOUBLE;
    if (parameters[i].kind == Kind::tensor && parameters[i].role != Role::input)
      shape = plain[i].shape;
  }
  std::string named;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].kind == Kind::tensor) continue;
    const bool rounded = parameters[i].kind == Kind::scalar && !wide;
    const double number = rounded ? static_cast<float>(c.numbers[i]) : c.numbers[i];
    attributes[numbers++] = number;
    char text[64];
    std::snprintf(text, sizeof text, " %s %.17g", parameters[i].name, number);
    named += text;
  }
  const auto count = product(shape);
  for (int64_t n = 0; n < count; ++n) {
    size_t given = 0, out = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].kind != Kind::tensor) continue;
      if (parameters[i].role != Role::input) out = i;
      if (parameters[i].role == Role::output) continue;
      int64_t rest = n, at = 0, step = 1;  // broadcast: dims of 1 and missing ones stay at 0
      const Dims& own = plain[i].shape;
      for (size_t d = shape.size(), k = own.size(); k-- > 0;) {
        const int64_t index = rest % shape[--d];
        rest /= shape[d];
        at += own[k] == 1 ? 0 : index * step;
        step *= own[k];
      }
      inputs[given++] = c.originals[i][static_cast<size_t>(at)];
    }
    const aclDataType dtype = plain[out].dtype;
    const double got = value_at(plain[out].data + n * static_cast<int64_t>(size_of(dtype)), dtype);
    const long double want = formula->formula(inputs, attributes);
    bool promised = !wide || formula->ulp <= 0.5;
    if (!promised) {
      promised = true;
      for (size_t i = 0; i < given; ++i) promised &= has_promise(inputs[i]);
      for (size_t i = 0; i < numbers; ++i) promised &= has_promise(attributes[i]);
    }
    if (promised && !is_right(got, want, dtype, wide, *formula)) {
      fault("%s must give %.21Lg for element %lld of inputs %.17Lg, %.17Lg with%s, but gave %.17g",
            c.row->name, want, static_cast<long long>(n), inputs[0], inputs[1], named.c_str(), got);
    }
  }
}

double good_real(Random& random) {
  if (random.chance(50)) return any_number(random);
  return random.chance(40) ? -static_cast<double>(random.between(0, 1))
                           : static_cast<double>(random.between(1, 32)) / 64;
}

}  // namespace

const Family elementwise = {good_real, nullptr, nullptr, check};

}  // namespace fuzz

// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/sizes.h"

#include <sstream>

namespace openaclnn::aten {
namespace {

std::string listed(at::IntArrayRef sizes) {
  std::ostringstream text;
  text << sizes;
  return text.str();
}

}  // namespace

// The number, list or shape of another parameter; false where it is NULL.
bool Sizes::append_value(const Size& size, std::vector<Wanted>* to) const {
  const IValue& value = call_.values[static_cast<size_t>(size.value)];
  if (value.isInt()) {
    to->push_back({&size, value.toInt()});
  } else if (value.isIntList()) {
    for (const int64_t n : value.toIntVector()) to->push_back({&size, n});
  } else if (value.isTensor()) {
    for (const int64_t n : value.toTensor().sizes()) to->push_back({&size, n});
  } else {
    return false;
  }
  return true;
}

std::vector<int64_t> Sizes::values_of(const Size& size) const {
  std::vector<Wanted> dims;
  (void)append_value(size, &dims);
  std::vector<int64_t> values;
  for (const Wanted& dim : dims) values.push_back(*dim.size);
  return values;
}

bool Sizes::is_missing(const Size& size) const {
  return size.kind == Size::Kind::named && named_[static_cast<size_t>(size.value)].missing;
}

std::vector<Sizes::Wanted> Sizes::wanted(const Limits& limits) const {
  std::vector<Wanted> made;
  for (int i = 0; i < limits.sizes; ++i) {
    const Size& size = limits.shape[i];
    switch (size.kind) {
      case Size::Kind::named: {
        if (is_missing(size)) break;
        const Named& known = named_[static_cast<size_t>(size.value)];
        made.push_back({&size, known.where == nullptr ? std::nullopt : std::optional(known.size)});
        break;
      }
      case Size::Kind::number: made.push_back({&size, size.value}); break;
      case Size::Kind::rest:
        if (rest_) {
          for (const int64_t n : *rest_) made.push_back({&size, n});
        } else {
          made.push_back({&size, std::nullopt, true});
        }
        break;
      case Size::Kind::any: made.push_back({&size, std::nullopt, true}); break;
      case Size::Kind::of_value:
        // NULL: any dims.
        if (!append_value(size, &made)) made.push_back({&size, std::nullopt, true});
        break;
    }
  }
  return made;
}

bool Sizes::take(const Parameter& parameter, const Wanted& wanted, int64_t got) {
  if (wanted.from->positive && got == 0) return false;
  if (wanted.size) return *wanted.size == got;
  if (wanted.from->kind == Size::Kind::named)
    named_[static_cast<size_t>(wanted.from->value)] = {got, false, parameter.name};
  return true;
}

void Sizes::take_rest(const Parameter& parameter, const Wanted& wanted, at::IntArrayRef got) {
  if (wanted.from->kind == Size::Kind::rest && !rest_) {
    rest_ = got.vec();
    rest_where_ = parameter.name;
  }
}

bool Sizes::fits(const Parameter& parameter, const std::vector<Wanted>& wanted,
                 at::IntArrayRef got) {
  size_t fixed = 0, optional = 0;
  int rest = 0;
  for (const Wanted& w : wanted) {
    rest += w.rest;
    fixed += !w.rest;
    optional += w.from->optional && !w.size;
  }
  if (rest > 1) return got.size() >= fixed;  // ambiguous: where does one end?
  // An optional dim that is not known yet is skipped if a dim is missing.
  const bool leave_out = optional > 0 && got.size() + 1 == fixed;
  if (leave_out) --fixed;
  if (rest > 0 ? got.size() < fixed : got.size() != fixed) return false;
  size_t at = 0;
  for (const Wanted& w : wanted) {
    if (leave_out && w.from->optional && !w.size) {
      named_[static_cast<size_t>(w.from->value)] = {0, true, parameter.name};
    } else if (w.rest) {
      const size_t count = got.size() - fixed;
      take_rest(parameter, w, got.slice(at, count));
      at += count;
    } else if (!take(parameter, w, got[at++])) {
      return false;
    }
  }
  return true;
}

void Sizes::check(const Parameter& parameter, at::IntArrayRef got) {
  const Limits& limits = parameter.limits;
  if (!limits.flat) {
    if (!fits(parameter, wanted(limits), got)) refuse(parameter, got);
    return;
  }
  const std::optional<int64_t> count = product(limits.shape, limits.sizes);
  if (count && *count != c10::multiply_integers(got)) refuse(parameter, got);
}

std::optional<int64_t> Sizes::product(const Size* factors, int count) const {
  int64_t all = 1;
  for (int i = 0; i < count; ++i) {
    const Size& factor = factors[i];
    std::vector<Wanted> dims;
    if (factor.kind == Size::Kind::of_value) {
      if (!append_value(factor, &dims)) return std::nullopt;
      for (const Wanted& dim : dims) {
        if (__builtin_mul_overflow(all, *dim.size, &all)) return std::nullopt;
      }
    } else if (factor.kind == Size::Kind::number) {
      all *= factor.value;
    } else if (factor.kind == Size::Kind::rest) {
      if (!rest_) return std::nullopt;
      all *= c10::multiply_integers(*rest_);
    } else {
      const Named& known = named_[static_cast<size_t>(factor.value)];
      if (known.where == nullptr) return std::nullopt;
      if (!known.missing) all *= known.size;
    }
  }
  return all;
}

// "weight must have shape [C], where C is 3 as in input, but got [4]".
void Sizes::refuse(const Parameter& parameter, at::IntArrayRef got) const {
  const Limits& limits = parameter.limits;
  const bool is_list = parameter.kind != Kind::tensor && parameter.kind != Kind::tensors;
  std::ostringstream text, known;
  if (limits.sizes == 1 && limits.shape[0].kind == Size::Kind::of_value && !is_list) {
    const bool of_tensor = call_.values[static_cast<size_t>(limits.shape[0].value)].isTensor();
    throw Refusal(
        c10::str(parameter.name, " must have the shape ", of_tensor ? "of " : "",
                 limits.shape[0].name, ", ", listed(values_of(limits.shape[0])), ", but got ", got),
        Reason::wrong_shape);
  }
  text << parameter.name << " must have ";
  if (limits.flat)
    text << product(limits.shape, limits.sizes).value_or(0) << " elements, as many as ";
  if (!is_list) text << (limits.flat ? "[" : "shape [");
  bool first = true;
  for (int i = 0; i < limits.sizes; ++i) {
    const Size& size = limits.shape[i];
    if (is_missing(size)) continue;
    if (!first) text << ", ";
    first = false;
    text << size.name << (size.positive ? " > 0" : "");
    const auto add = [&](const std::string& value, const char* where) {
      if (is_list && size.kind == Size::Kind::number) return;
      known << (known.tellp() > 0 ? ", " : ", where ") << size.name << " is " << value;
      if (where != nullptr) known << " as in " << where;
    };
    if (size.kind == Size::Kind::named) {
      const Named& found = named_[static_cast<size_t>(size.value)];
      if (found.where != nullptr && found.where != parameter.name)
        add(std::to_string(found.size), found.where);
    } else if (size.kind == Size::Kind::rest && rest_ && rest_where_ != parameter.name) {
      add(listed(*rest_), rest_where_);
    } else if (size.kind == Size::Kind::of_value) {
      const std::vector<int64_t> values = values_of(size);
      if (values.empty()) continue;
      const IValue& value = call_.values[static_cast<size_t>(size.value)];
      add(value.isInt() ? std::to_string(values[0]) : listed(values), nullptr);
    }
  }
  text << (is_list ? " elements" : "]") << known.str() << ", but ";
  if (is_list)
    text << "has " << got[0];
  else
    text << "got " << got;
  throw Refusal(text.str(), Reason::wrong_shape);
}

}  // namespace openaclnn::aten

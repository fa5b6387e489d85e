// SPDX-License-Identifier: Apache-2.0
#include "core/ops/argument_checks.h"
#include "core/ops/shapes.h"

#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "core/base/view.h"
#include "core/base/listed.h"

namespace openaclnn {
namespace {

bool is_given(const Form& form) {
  for (int k = 0; k < form.extent_count; ++k) {
    if (form.extents[k].size < 0) return true;
  }
  return false;
}

// "of samples and groups"
std::string counted(const Form& form) {
  std::vector<std::string> counts;
  for (int k = 0; k < form.extent_count; ++k) counts.push_back(form.extents[k].count);
  return "of " + listed(counts, "and");
}

}  // namespace

const Tensor* Sizes::tensor(int parameter) const {
  const bool is_tensor = op_.parameters[parameter].kind == Kind::tensor;
  return is_tensor && is_wanted(op_, arguments_, parameter) ? arguments_[parameter].tensor
                                                            : nullptr;
}

const Tensor* Sizes::binding_input(int parameter) const {
  const Form& form = op_.forms[parameter];
  if (op_.parameters[parameter].role == Role::output || form.flat || is_given(form)) return nullptr;
  return tensor(parameter);
}

int64_t Sizes::value(const Extent& extent) const {
  return extent.size >= 0 ? size_[extent.size] : arguments_[extent.attribute].integer;
}

Dims Sizes::shape(int parameter) const {
  const Form& form = op_.forms[parameter];
  Dims dims;
  for (int k = 0; k < form.extent_count; ++k) dims[dims.rank++] = value(form.extents[k]);
  for (int d = rest_from_; form.rest && d < rest_->rank; ++d) dims[dims.rank++] = (*rest_)[d];
  return dims;
}

Status Sizes::check_ranks() const {
  for (int i = 0; i < op_.parameter_count; ++i) {
    const Form& form = op_.forms[i];
    const Tensor* const input = binding_input(i);
    if (input == nullptr) continue;
    const int rank = input->shape.rank, least = form.extent_count;
    if (form.rest ? rank >= least && rank <= kMaxRank : rank == least) continue;
    std::string wanted = std::to_string(least);
    if (form.rest) wanted += " to " + std::to_string(kMaxRank);
    wanted += form.rest || least != 1 ? " dimensions" : " dimension";
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, op_.name,
                "%s must have %s, but got %d", op_.parameters[i].name, wanted.c_str(), rank);
  }
  return {};
}

Status Sizes::check(int parameter) const {
  const Dims wanted = shape(parameter);
  const Dims& shape = arguments_[parameter].tensor->shape;
  if (shape == wanted) return {};
  const Form& form = op_.forms[parameter];
  if (form.like < 0 && form.extent_count == 1 && !form.rest && form.extents[0].size >= 0) {
    const int giver = giver_[form.extents[0].size];
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, op_.name,
                "%s must have shape %s, the %s of %s %s, but got %s",
                op_.parameters[parameter].name, to_text(wanted).c_str(), form.extents[0].count,
                op_.parameters[giver].name, to_text(arguments_[giver].tensor->shape).c_str(),
                to_text(shape).c_str());
  }
  const std::string whose =
      form.like >= 0 ? std::string("of ") + op_.parameters[form.like].name : counted(form);
  return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, op_.name,
              "%s must have the shape %s %s, but got %s", op_.parameters[parameter].name,
              whose.c_str(), to_text(wanted).c_str(), to_text(shape).c_str());
}

Status Sizes::check_count(int parameter) const {
  const Form& form = op_.forms[parameter];
  const Dims& shape = arguments_[parameter].tensor->shape;
  const Dims wanted = this->shape(parameter);
  int64_t elements = 0, count = 0;
  const bool counted = element_count(wanted, &elements) && element_count(shape, &count);
  if (counted && count == elements && (shape.rank <= 1 || shape[0] == wanted[0])) return {};
  std::vector<std::string> wanted_counts;
  for (int k = 0; k < form.extent_count; ++k) {
    wanted_counts.push_back(std::to_string(wanted[k]) + " " + form.extents[k].count);
  }
  return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, op_.name,
              "%s must have an element for each of %s, %s first, but got shape %s",
              op_.parameters[parameter].name, listed(wanted_counts, "and").c_str(),
              form.extents[0].count, to_text(shape).c_str());
}

Status Sizes::read_inputs() {
  for (int i = 0; i < op_.parameter_count; ++i) {
    const Form& form = op_.forms[i];
    const Tensor* const input = binding_input(i);
    if (input == nullptr) continue;
    for (int k = 0; k < form.extent_count; ++k) {
      const int size = form.extents[k].size;
      if ((known_ >> size & 1) == 0) size_[size] = input->shape[k], giver_[size] = i;
      known_ |= 1u << size;
    }
    if (form.rest && rest_ == nullptr) rest_ = &input->shape, rest_from_ = form.extent_count;
    if (Status status = check(i); !status.ok()) return status;
  }
  return {};
}

Status Sizes::check_outputs() const {
  for (int i = 0; i < op_.parameter_count; ++i) {
    if (op_.parameters[i].role != Role::output || is_given(op_.forms[i])) continue;
    if (tensor(i) == nullptr) continue;
    if (Status status = check(i); !status.ok()) return status;
  }
  return {};
}

Status Sizes::check_given() const {
  for (int i = 0; i < op_.parameter_count; ++i) {
    const Form& form = op_.forms[i];
    if (tensor(i) == nullptr || !(form.flat || is_given(form))) continue;
    Status status = form.flat ? check_count(i) : check(i);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace openaclnn

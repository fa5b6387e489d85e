// SPDX-License-Identifier: Apache-2.0
#include "core/ops/argument_checks.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/object.h"
#include "core/base/plan_observer.h"
#include "core/base/view.h"
#include "core/ops/foreign.h"
#include "core/ops/launch.h"
#include "core/base/listed.h"
#include "core/support/api_guard.h"
#include "core/support/arithmetic.h"
#include "core/support/product.h"

namespace openaclnn {
namespace {

constexpr uint64_t bit(aclDataType dtype) { return uint64_t{1} << dtype; }

constexpr uint64_t kScalarDtypes = bit(ACL_FLOAT) | bit(ACL_FLOAT16) | bit(ACL_BF16) |
                                   bit(ACL_DOUBLE) | bit(ACL_INT8) | bit(ACL_INT16) |
                                   bit(ACL_INT32) | bit(ACL_INT64) | bit(ACL_UINT8) | bit(ACL_BOOL);
constexpr uint64_t kFloatDtypes =
    bit(ACL_FLOAT) | bit(ACL_FLOAT16) | bit(ACL_BF16) | bit(ACL_DOUBLE);

bool is_in(aclDataType dtype, uint64_t set) {
  return dtype >= 0 && static_cast<int>(dtype) < 64 && (set >> dtype & 1) != 0;
}

}  // namespace

Status check_product(const Operator& op, int product) {
  if (products[product].has_everything || (op.products >> product & 1) != 0) return {};
  std::vector<std::string> having;
  for (int i = 0; i < product_count; ++i) {
    if ((op.products >> i & 1) == 0) continue;
    having.push_back(products[i].title);
  }
  return fail(ACLNN_ERR_INNER_FIND_KERNEL_ERROR, Reason::not_supported, op.name,
              "the product must be %s, but is %s", listed(having, "or").c_str(),
              products[product].title);
}

Element element_of(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT16: return Element::f16;
    case ACL_BF16: return Element::bf16;
    case ACL_DOUBLE: return Element::f64;
    default: return Element::f32;
  }
}

bool is_wanted(const Operator& op, const Argument* arguments, int i) {
  const int condition = op.parameters[i].condition;
  return arguments[i].handle != nullptr && (condition < 0 || arguments[condition].flag);
}

uint64_t accepted_dtypes(const Row& row, int index) {
  const Product& product = products[index];
  if (product.has_everything) return row.computed;
  if ((row.products >> index & 1) == 0) return 0;
  return product.has_bfloat16 ? row.dtypes : row.dtypes & ~bit(ACL_BF16);
}

Status check_dtypes(const Operator& op, const Argument* arguments, int index) {
  const Product& product = products[index];
  const uint64_t accepted = accepted_dtypes(op, index);
  const uint64_t castable = product.has_bfloat16 ? kFloatDtypes : kFloatDtypes & ~bit(ACL_BF16);
  const Parameter *first = nullptr, *companion = nullptr;
  aclDataType first_dtype = ACL_DT_UNDEFINED, companion_dtype = ACL_DT_UNDEFINED;
  for (int i = 0; i < op.parameter_count; ++i) {
    const Parameter& parameter = op.parameters[i];
    if (parameter.kind == Kind::scalar) {
      const aclDataType dtype = arguments[i].scalar->dtype;
      if (is_in(dtype, kScalarDtypes)) continue;
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, op.name,
                  "%s must have dtype %s, but got %s", parameter.name,
                  dtype_list(kScalarDtypes).c_str(), dtype_name(dtype));
    }
    if (parameter.kind != Kind::tensor || !is_wanted(op, arguments, i)) continue;
    const aclDataType dtype = arguments[i].tensor->dtype;
    const bool is_output = parameter.role == Role::output;
    const bool casts = is_output && op.output == Output::castable;
    const uint64_t allowed = casts ? castable : accepted;
    if (!is_in(dtype, allowed)) {
      const uint64_t possible = casts ? kFloatDtypes : op.computed;
      const char* hint = is_in(dtype, possible) ? "; OPENACLNN_PRODUCT=any accepts it" : "";
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, op.name,
                  "%s must have dtype %s on %s, but got %s%s", parameter.name,
                  dtype_list(allowed).c_str(), product.title, dtype_name(dtype), hint);
    }
    const bool must_equal = is_output ? op.output == Output::equal : op.inputs == Inputs::equal;
    if (first == nullptr) {
      first = &parameter, first_dtype = dtype;
    } else if (parameter.companion) {
      if (companion == nullptr && (dtype == first_dtype || dtype == ACL_FLOAT)) {
        companion = &parameter, companion_dtype = dtype;
      } else if (companion == nullptr) {
        return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, op.name,
                    "%s must have %s dtype of %s %s, but got %s", parameter.name,
                    first_dtype == ACL_FLOAT ? "the" : "dtype FLOAT or the", first->name,
                    dtype_name(first_dtype), dtype_name(dtype));
      } else if (dtype != companion_dtype) {
        return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, op.name,
                    "%s must have the dtype of %s %s, but got %s", parameter.name, companion->name,
                    dtype_name(companion_dtype), dtype_name(dtype));
      }
    } else if (must_equal && dtype != first_dtype) {
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, op.name,
                  "%s must have the dtype of %s %s, but got %s", parameter.name, first->name,
                  dtype_name(first_dtype), dtype_name(dtype));
    }
  }
  return {};
}

Status check_view(const Operator& op, const Parameter& parameter, const Tensor& tensor) {
  int64_t low = 0, high = 0, storage = 0;
  const bool sized = element_count(tensor.storage, &storage) && element_range(tensor, &low, &high);
  if (low == high && sized) return {};
  if (!sized || low < 0 || high > storage) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op.name,
                "%s must stay inside its storage %s, but its view of shape %s, strides %s and "
                "offset %lld reaches "
                "outside",
                parameter.name, to_text(tensor.storage).c_str(), to_text(tensor.shape).c_str(),
                to_text(tensor.strides).c_str(), static_cast<long long>(tensor.offset));
  }
  if (tensor.data == nullptr) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, {Reason::null_argument, ObjectKind::device_memory},
                op.name, "%s has no data: its address is NULL", parameter.name);
  }
  const auto alignment = dtype_size(tensor.dtype);
  if (reinterpret_cast<uintptr_t>(tensor.data) % alignment != 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op.name,
                "%s must be aligned to its element size %zu, but its address is %p", parameter.name,
                alignment, tensor.data);
  }
  uintptr_t end;
  const auto bytes = static_cast<uint64_t>(high) * alignment;  // below 2^62
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(tensor.data), bytes, &end)) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op.name,
                "%s must end inside the address space, but %llu bytes follow its address %p",
                parameter.name, static_cast<unsigned long long>(bytes), tensor.data);
  }
  return {};
}

Status check_overlap(const Operator& op, const Argument* arguments) {
  for (int o = 0; o < op.parameter_count; ++o) {
    const Parameter& out = op.parameters[o];
    if (out.kind != Kind::tensor || out.role == Role::input || !is_wanted(op, arguments, o))
      continue;
    if (overlaps_itself(*arguments[o].tensor)) {
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op.name,
                  "%s must not overlap itself, but has shape %s with strides %s", out.name,
                  to_text(arguments[o].tensor->shape).c_str(),
                  to_text(arguments[o].tensor->strides).c_str());
    }
    for (int i = 0; i < op.parameter_count; ++i) {
      const Parameter& other = op.parameters[i];
      if (i == o || other.kind != Kind::tensor || !is_wanted(op, arguments, i)) continue;
      // A companion is written before all of x is read.
      const bool may_be_same = other.role == Role::input && !out.companion && !other.companion;
      if (may_be_same && same_view(*arguments[o].tensor, *arguments[i].tensor)) continue;
      if (!views_overlap(*arguments[o].tensor, *arguments[i].tensor)) continue;
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op.name,
                  may_be_same ? "%s must be the same view as %s or share no memory with it, but "
                                "overlaps it%s"
                              : "%s must share no memory with %s, but overlaps it%s",
                  out.name, other.name,
                  SpansText(out.name, *arguments[o].tensor, other.name, *arguments[i].tensor).text);
    }
  }
  return {};
}

}  // namespace openaclnn

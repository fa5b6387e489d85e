// SPDX-License-Identifier: Apache-2.0
// One call of a row between its phases, with the C arguments as ATen values. Tensors wrap the
// program's memory without copies.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "core/aten/row.h"
#include "core/base/tensor.h"
#include "core/support/observer.h"
#include "core/torch/dtypes.h"

namespace openaclnn::aten {

using at::Tensor;
using c10::IValue;

// Why a call is wrong: a sentence without the operator.
struct Refusal : std::runtime_error {
  explicit Refusal(const std::string& sentence, Cause why = Reason::wrong_value,
                   int32_t code = ACLNN_ERR_PARAM_INVALID)
      : std::runtime_error(sentence), cause(why), status(code) {}
  Cause cause;
  int32_t status;
};

// An argument that must not be NULL.
struct Missing : Refusal {
  explicit Missing(const std::string& name)
      : Refusal(name + " must not be NULL", {Reason::null_argument, ObjectKind::tensor},
                ACLNN_ERR_PARAM_NULLPTR) {}
};

inline Missing missing_element(const char* list, size_t i) {
  return Missing(std::string(list) + "[" + std::to_string(i) + "]");
}

// Thrown by a composite that reads data in phase 1, where tensors have none.
struct NeedsData : std::runtime_error {
  NeedsData() : std::runtime_error("the data are not known in phase 1") {}
};
inline void need_data(const Tensor& tensor) {
  if (tensor.is_meta()) throw NeedsData();
}

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

at::ScalarType scalar_type(int64_t acl_dtype);

// Converts the argument to ATen's value; NULL becomes None.
IValue to_ivalue(const Parameter& parameter, const Value& value);

struct Call {
  const Row* row;
  std::vector<IValue> values;
  std::vector<const void*> handles;  // of tensors with data-dependent shapes
  // For check mode: the memory that phase 2 reads and writes, reported by perform(). The executors
  // of C programs have operands instead.
  std::vector<Range> ranges{};
  // Where refusals are deferred (core/npu/queue.h): what phase 1 found wrong.
  TakenFailure refusal{};
  bool checked = false;  // by check_call
  // ATen's kernel writes the output itself: it fits the result and is no input.
  bool writes_out = false;
  bool direct = false;  // computed by direct.h

  void take(const Parameter& parameter, const Value& value);  // the next argument
  Tensor tensor(size_t i) const { return values[i].isNone() ? Tensor() : values[i].toTensor(); }
};

// Phase 2: waits for the stream and computes.
int32_t perform(const Row& row, const std::function<Call()>& make, void* stream);

// Copies; through a temporary if the two overlap at different elements.
void copy_into(const Tensor& to, const Tensor& from);
// The bytes from the first element to the last; of none, nullptr to nullptr. Tensors of pointers
// have a storage each, so ATen's question for overlaps finds none.
struct Span {
  const char *begin = nullptr, *end = nullptr;
};
Span span_of(const Tensor& tensor);
bool are_disjoint(const Span& a, const Span& b);
inline bool are_disjoint(const Tensor& a, const Tensor& b) {
  return are_disjoint(span_of(a), span_of(b));
}
// The tensor, or a copy if it overlaps the written one.
Tensor copy_if_overlapping(const Tensor& tensor, const Tensor& written);

// Copies a result into the caller's tensor, which may have another dtype, other strides, and more
// or fewer dims of size 1; both may be empty, with any shapes. Skips an undefined result and a
// missing tensor.
void put(const Tensor& out, const Tensor& result, const char* name = "out");
// ATen returns a tensor of shape [0] for a secondary output that it does not compute, such as
// batch_norm's statistics outside training. The output is left unwritten.
inline bool is_not_computed(size_t output, const IValue& result) {
  return output > 0 && result.isTensor() && result.toTensor().defined() &&
         result.toTensor().sizes() == at::IntArrayRef{0};
}
void check_result(const Tensor& out, const Tensor& result,
                  const char* name);  // whether put() accepts the result
// Reports to check mode that the elements of an output from `first` on are left unwritten.
void leave(const Tensor& out, int64_t first = 0);

// Writes an output whose shape depends on the data: it has enough room, and gets the shape of the
// result.
class Sized {
 public:
  Sized(Tensor room, const void* handle) : room_(std::move(room)), handle_(handle) {}
  void operator=(const Tensor& result) const;

 private:
  Tensor room_;
  const void* handle_;
};

}  // namespace openaclnn::aten

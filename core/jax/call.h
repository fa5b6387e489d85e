// SPDX-License-Identifier: Apache-2.0
// One custom call: XLA's buffers and attributes as plain data, then both phases on the thread that
// XLA calls from. Results are written to XLA's buffers without copies.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "acl/acl_base_rt.h"
#include "core/ops/direct.h"
#include "xla/ffi/api/ffi.h"

namespace openaclnn::jax {

namespace ffi = xla::ffi;

inline int32_t acl_dtype(ffi::DataType dtype) {
  switch (dtype) {
    case ffi::DataType::F32: return ACL_FLOAT;
    case ffi::DataType::F16: return ACL_FLOAT16;
    case ffi::DataType::BF16: return ACL_BF16;
    case ffi::DataType::F64: return ACL_DOUBLE;
    default: return ACL_DT_UNDEFINED;  // refused by the call, and before it by openaclnn.jax
  }
}

class Call {
 public:
  Call(const Row& row, ffi::RemainingArgs arguments, ffi::RemainingRets results,
       ffi::Dictionary attributes)
      : row_(row), arguments_(arguments), results_(results), attributes_(attributes) {}

  ffi::Error run() {
    for (int i = 0; i < row_.parameter_count; ++i) {
      if (row_.parameters[i].kind != Kind::tensor) take_attribute(i);
    }
    size_t argument = 0, result = 0;
    for (int i = 0; i < row_.parameter_count; ++i) {
      const Parameter& p = row_.parameters[i];
      if (p.kind != Kind::tensor) continue;
      value_[i].tensor = nullptr;
      if (p.condition >= 0 && value_[p.condition].integer == 0) continue;
      const bool input = p.role == Role::input || p.role == Role::inout;
      if (input) view(i, arguments_.get<ffi::AnyBuffer>(argument++));
      if (p.role == Role::output) view(i, made(result++));
      if (p.role == Role::inout) write_over(i, made(result++));
    }
    if (error_.failure()) return error_;
    if (row_.pointwise && all_alike()) flatten();
    for (int i = 0; i < row_.parameter_count; ++i) {
      if (row_.parameters[i].kind != Kind::tensor || value_[i].tensor == nullptr) continue;
      if (view_[i].rank > kMaxRank) return too_many_dimensions(i);
      lay_out(i);
    }
    if (openaclnn_call_for_xla(&row_, value_) == 0) return ffi::Error::Success();
    char sentence[1024], text[1024];
    openaclnn_take_sentence(sentence, sizeof sentence);
    openaclnn_python_sentence(&row_, sentence, text, sizeof text);
    return ffi::Error::InvalidArgument(text);
  }

 private:
  void take_attribute(int i) {
    const Parameter& p = row_.parameters[i];
    switch (p.kind) {
      case Kind::scalar:
      case Kind::real: value_[i].real = attribute<double>(p); break;
      case Kind::integer: value_[i].integer = attribute<int64_t>(p); break;
      case Kind::flag: value_[i].integer = attribute<bool>(p); break;
      case Kind::text:
        value_[i].text = nullptr;
        if (!attributes_.contains(p.python)) break;
        text_ = attribute<std::string_view>(p);  // a row has at most one
        value_[i].text = text_.c_str();
        break;
      case Kind::tensor: break;
    }
  }

  template <typename T>
  T attribute(const Parameter& p) {
    ffi::ErrorOr<T> found = attributes_.get<T>(p.python);
    if (found.has_value()) return found.value();
    error_ = found.error();
    return {};
  }

  ffi::ErrorOr<ffi::AnyBuffer> made(size_t index) {
    auto result = results_.get<ffi::AnyBuffer>(index);
    if (!result.has_value()) return ffi::Unexpected(result.error());
    return *result.value();
  }

  void view(int i, ffi::ErrorOr<ffi::AnyBuffer> found) {
    if (!found.has_value()) {
      error_ = found.error();
      return;
    }
    const ffi::AnyBuffer& buffer = found.value();
    const ffi::AnyBuffer::Dimensions dims = buffer.dimensions();
    view_[i] = {buffer.untyped_data(), dims.begin(), strides_[i], static_cast<int32_t>(dims.size()),
                acl_dtype(buffer.element_type())};
    value_[i].tensor = &view_[i];
  }

  // The result of an in-place row has the memory of its input (input_output_aliases).
  void write_over(int i, ffi::ErrorOr<ffi::AnyBuffer> result) {
    if (!result.has_value()) error_ = result.error();
    if (error_.failure()) return;
    if (result.value().untyped_data() != view_[i].data)
      error_ = ffi::Error::Internal(std::string(row_.python) +
                                    ": the result must have the memory of its input");
  }

  bool all_alike() const {
    const openaclnn_view* first = nullptr;
    for (int i = 0; i < row_.parameter_count; ++i) {
      if (row_.parameters[i].kind != Kind::tensor) continue;
      const openaclnn_view& view = view_[i];
      if (first == nullptr) first = &view;
      if (view.rank != first->rank || !std::equal(view.shape, view.shape + view.rank, first->shape))
        return false;
    }
    return true;
  }

  // As one dimension: jax.vmap may add more dims than the library accepts.
  void flatten() {
    size_ = 1;
    bool counted = false;
    for (int i = 0; i < row_.parameter_count; ++i) {
      if (row_.parameters[i].kind != Kind::tensor) continue;
      if (!counted) {
        for (int d = 0; d < view_[i].rank; ++d) size_ *= view_[i].shape[d];
        counted = true;
      }
      view_[i].shape = &size_;
      view_[i].rank = 1;
    }
  }

  // Row-major, XLA's default layout.
  void lay_out(int i) {
    const openaclnn_view& view = view_[i];
    int64_t stride = 1;
    for (int d = view.rank - 1; d >= 0; --d) {
      strides_[i][d] = stride;
      stride *= view.shape[d];
    }
  }

  ffi::Error too_many_dimensions(int i) const {
    return ffi::Error::InvalidArgument(std::string(row_.python) + ": " + row_.parameters[i].python +
                                       " must have at most 8 dimensions, batches among them, but "
                                       "got " +
                                       std::to_string(view_[i].rank));
  }

  const Row& row_;
  const ffi::RemainingArgs arguments_;
  const ffi::RemainingRets results_;
  const ffi::Dictionary attributes_;
  ffi::Error error_ = ffi::Error::Success();
  std::string text_;
  int64_t size_ = 0;
  int64_t strides_[kMaxParameters][kMaxRank];
  openaclnn_view view_[kMaxParameters];
  openaclnn_value value_[kMaxParameters];
};

}  // namespace openaclnn::jax

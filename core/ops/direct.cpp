// SPDX-License-Identifier: Apache-2.0
#include "core/ops/direct.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/ops/operator.h"
#include "core/ops/streaming.h"
#include "core/runtime/api_guard.h"
#include "core/runtime/parallel.h"

namespace openaclnn {
namespace {

const Operator& operator_of(const openaclnn_operator* handle) {
  return *reinterpret_cast<const Operator*>(handle);
}

void copy(const int64_t* from, int rank, Dims* to) {
  to->rank = rank;
  std::copy_n(from, rank, to->at);
}

// The arguments of phase 1. Tensors and scalars are constructed only where they are needed; most of
// the space stays untouched.
class Arguments {
 public:
  Arguments(const Operator& op, const openaclnn_value* values) {
    for (int i = 0; i < op.parameter_count; ++i) {
      Argument& argument = argument_[i];
      argument.handle = nullptr;
      switch (op.parameters[i].kind) {
        case Kind::tensor:
          if (values[i].tensor != nullptr) argument.tensor = view(*values[i].tensor, i);
          break;
        case Kind::scalar: argument.scalar = number(values[i].real, i); break;
        case Kind::real: argument.real = values[i].real; break;
        case Kind::integer: argument.integer = values[i].integer; break;
        case Kind::flag: argument.flag = values[i].integer != 0; break;
        case Kind::text: argument.text = values[i].text; break;
      }
    }
  }

  const Argument* get() const { return argument_; }

 private:
  const Tensor* view(const openaclnn_view& given, int i) {
    auto* tensor = new (room_[i].tensor) Tensor;
    tensor->dtype = static_cast<aclDataType>(given.dtype);
    copy(given.shape, std::min(given.rank, kMaxDims), &tensor->shape);
    copy(given.strides, std::min(given.rank, kMaxDims), &tensor->strides);
    int64_t end = 1;  // of memory that is alive: in range
    for (int d = 0; d < tensor->shape.rank; ++d) {
      if (tensor->shape[d] == 1) tensor->strides[d] = 1;  // it is never used
      end =
          tensor->shape[d] == 0 || end == 0 ? 0 : end + (tensor->shape[d] - 1) * tensor->strides[d];
    }
    tensor->storage.rank = 1;
    tensor->storage[0] = end;
    tensor->data = given.data;
    return tensor;
  }

  const Scalar* number(double value, int i) {
    auto* scalar = new (room_[i].scalar) Scalar;
    scalar->dtype = ACL_DOUBLE;
    std::memcpy(scalar->bytes, &value, sizeof value);
    return scalar;
  }

  union Room {
    alignas(Tensor) unsigned char tensor[sizeof(Tensor)];
    alignas(Scalar) unsigned char scalar[sizeof(Scalar)];
  };
  Argument argument_[kMaxParameters];
  Room room_[kMaxParameters];
};

Status call(const Operator& op, const openaclnn_value* values) {
  const Arguments arguments(op, values);
  Executor executor(&op);
  if (Status status = plan(op, arguments.get(), executor); !status.ok()) return status;
  void* workspace = nullptr;
  if (const uint64_t bytes = executor.workspace_size(); bytes != 0) {
    workspace = std::aligned_alloc(kWorkspaceAlignment, bytes);
    if (workspace == nullptr) throw std::bad_alloc();
  }
  const std::unique_ptr<void, decltype(&std::free)> owner(workspace, &std::free);
  executor.run_with_enough_stack(workspace);
  return {};
}

Status infer_output(const Operator& op, const openaclnn_value* values, int output, int32_t* dtype,
                    int32_t* rank, int64_t* shape) {
  const Arguments arguments(op, values);
  aclDataType made = ACL_DT_UNDEFINED;
  Dims dims;
  if (Status status = infer(op, arguments.get(), output, &made, &dims); !status.ok()) return status;
  *dtype = made;
  *rank = dims.rank;
  std::copy_n(dims.at, dims.rank, shape);
  return {};
}

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

extern "C" const openaclnn_operator* openaclnn_find(const char* name) {
  for (int i = 0; i < operator_count; ++i) {
    if (std::strcmp(operators[i]->name, name) == 0)
      return reinterpret_cast<const openaclnn_operator*>(operators[i]);
  }
  return nullptr;
}

extern "C" int32_t openaclnn_accepts(const openaclnn_operator* op, int32_t dtype) {
  const uint64_t accepted = accepted_dtypes(operator_of(op));
  return dtype >= 0 && dtype < 64 && (accepted >> dtype & 1) != 0 ? 1 : 0;
}

extern "C" int32_t openaclnn_infer(const openaclnn_operator* op, const openaclnn_value* values,
                                   int32_t output, int32_t* dtype, int32_t* rank, int64_t* shape) {
  const Operator& row = operator_of(op);
  return guarded(row.name, ACLNN_ERR_INNER,
                 [&] { return infer_output(row, values, output, dtype, rank, shape); })
      .code();
}

extern "C" int32_t openaclnn_call(const openaclnn_operator* op, const openaclnn_value* values) {
  const Operator& row = operator_of(op);
  this_thread_calls_torch();
  return guarded(row.name, ACLNN_ERR_INNER, [&] { return call(row, values); }).code();
}

extern "C" int32_t openaclnn_call_for_xla(const openaclnn_operator* op,
                                          const openaclnn_value* values) {
  const Operator& row = operator_of(op);
  const OutputsAreNew no_streaming;
  return guarded(row.name, ACLNN_ERR_INNER, [&] { return call(row, values); }).code();
}

extern "C" void openaclnn_take_sentence(char* text, size_t size) {
  if (size == 0) return;
  const std::string sentence = take_sentence();
  const size_t length = std::min(sentence.size(), size - 1);
  std::memcpy(text, sentence.data(), length);
  text[length] = 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "core/ops/direct.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/ops/argument_checks.h"
#include "core/ops/operator.h"
#include "core/ops/streaming.h"
#include "core/support/api_guard.h"
#include "core/support/parallel.h"
#include "core/support/product.h"

namespace openaclnn {
namespace {

const Operator& operator_of(const Row* row) { return *static_cast<const Operator*>(row); }

void copy(const int64_t* from, int rank, Dims* to) {
  to->rank = rank;
  std::copy_n(from, rank, to->at);
}

// Any strides for a shape that no memory holds: phase 1 refuses it.
Dims row_major(const Dims& shape) {
  int64_t count = 0;
  return element_count(shape, &count) ? contiguous_strides(shape) : shape;
}

// The arguments of phase 1. Tensors and scalars are constructed only where they are needed; most of
// the space stays untouched.
class Arguments {
 public:
  // Imagined: tensors without an address lie one behind the other in memory that nobody reads.
  enum class Memory : uint8_t { real, imagined };

  Arguments(const Operator& op, const openaclnn_value* values, Memory memory = Memory::real)
      : memory_(memory) {
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

  // An output that the caller has not made.
  void add_output(int i, aclDataType dtype, const Dims& shape) {
    auto* tensor = new (room_[i].tensor) Tensor;
    tensor->dtype = dtype;
    tensor->shape = shape;
    tensor->strides = row_major(shape);
    place(tensor);
    argument_[i].tensor = tensor;
  }

 private:
  const Tensor* view(const openaclnn_view& given, int i) {
    auto* tensor = new (room_[i].tensor) Tensor;
    tensor->dtype = static_cast<aclDataType>(given.dtype);
    copy(given.shape, std::min(given.rank, kMaxDims), &tensor->shape);
    if (given.strides == nullptr) {
      tensor->strides = row_major(tensor->shape);
    } else {
      copy(given.strides, std::min(given.rank, kMaxDims), &tensor->strides);
    }
    for (int d = 0; d < tensor->shape.rank; ++d) {
      if (tensor->shape[d] == 1) tensor->strides[d] = 1;  // it is never used
    }
    if (memory_ == Memory::imagined && given.data == nullptr) {
      place(tensor);
      return tensor;
    }
    int64_t end = 1;  // of memory that is alive: in range
    for (int d = 0; d < tensor->shape.rank; ++d) {
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

  void place(Tensor* tensor) {
    int64_t low = 0, high = 0;
    tensor->storage.rank = 1;
    tensor->storage[0] = element_range(*tensor, &low, &high) ? high : 0;
    tensor->data = reinterpret_cast<void*>(next_);
    // No element has more than 16 bytes.
    next_ += (static_cast<uintptr_t>(tensor->storage[0]) + 1) * kLargestElement;
  }

  static constexpr uintptr_t kLargestElement = 16;

  union Room {
    alignas(Tensor) unsigned char tensor[sizeof(Tensor)];
    alignas(Scalar) unsigned char scalar[sizeof(Scalar)];
  };
  const Memory memory_;
  uintptr_t next_ = kLargestElement;  // the next address in imagined memory
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

Status check_sizes(const Operator& op, const openaclnn_value* values) {
  for (int i = 0; i < op.parameter_count; ++i) {
    if (op.parameters[i].kind != Kind::tensor || values[i].tensor == nullptr) continue;
    const openaclnn_view& view = *values[i].tensor;
    const int64_t* const end = view.shape + view.rank;
    const int64_t* const negative = std::find_if(view.shape, end, [](int64_t n) { return n < 0; });
    if (negative == end) continue;
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, op.name,
                "%s must have sizes of at least 0, but got %lld", op.parameters[i].name,
                static_cast<long long>(*negative));
  }
  return {};
}

Status check_metadata(const Operator& op, const openaclnn_value* values, int product,
                      openaclnn_made* made) {
  if (Status status = check_sizes(op, values); !status.ok()) return status;
  Arguments arguments(op, values, Arguments::Memory::imagined);
  for (int i = 0; i < op.parameter_count; ++i) {
    const Parameter& p = op.parameters[i];
    made[i].rank = -1;
    if (p.role != Role::output || values[i].tensor != nullptr) continue;
    if (p.condition >= 0 && values[p.condition].integer == 0) continue;
    aclDataType dtype = ACL_DT_UNDEFINED;
    Dims shape;
    Status status = infer(op, arguments.get(), i, &dtype, &shape, product);
    if (!status.ok()) return status;
    arguments.add_output(i, dtype, shape);
    made[i].dtype = dtype;
    made[i].rank = shape.rank;
    std::copy_n(shape.at, shape.rank, made[i].shape);
  }
  return dry_plan(op, arguments.get(), product);
}

int product_any() {
  int i = 0;
  while (!products[i].has_everything) ++i;
  return i;
}

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

extern "C" const Row* openaclnn_row(int32_t position) {
  return position >= 0 && position < operator_count ? operators[position] : nullptr;
}

extern "C" const Row* openaclnn_find(const char* name) {
  for (int i = 0; i < operator_count; ++i) {
    if (std::strcmp(operators[i]->name, name) == 0) return operators[i];
  }
  return nullptr;
}

extern "C" int32_t openaclnn_accepts(const Row* row, int32_t dtype) {
  const uint64_t accepted = accepted_dtypes(*row, current_product());
  return dtype >= 0 && dtype < 64 && (accepted >> dtype & 1) != 0 ? 1 : 0;
}

extern "C" int32_t openaclnn_infer(const Row* row, const openaclnn_value* values, int32_t output,
                                   int32_t* dtype, int32_t* rank, int64_t* shape) {
  return guarded(row->name, ACLNN_ERR_INNER,
                 [&] { return infer_output(operator_of(row), values, output, dtype, rank, shape); })
      .code();
}

extern "C" int32_t openaclnn_check(const Row* row, const openaclnn_value* values,
                                   int32_t everything, openaclnn_made* made) {
  return guarded(row->name, ACLNN_ERR_INNER,
                 [&] {
                   const int product = everything != 0 ? product_any() : current_product();
                   return check_metadata(operator_of(row), values, product, made);
                 })
      .code();
}

extern "C" int32_t openaclnn_call(const Row* row, const openaclnn_value* values) {
  this_thread_calls_torch();
  return guarded(row->name, ACLNN_ERR_INNER, [&] { return call(operator_of(row), values); }).code();
}

extern "C" int32_t openaclnn_call_for_xla(const Row* row, const openaclnn_value* values) {
  const OutputsAreNew no_streaming;
  return guarded(row->name, ACLNN_ERR_INNER, [&] { return call(operator_of(row), values); }).code();
}

extern "C" void openaclnn_take_sentence(char* text, size_t size) {
  if (size == 0) return;
  const std::string sentence = take_sentence();
  const size_t length = std::min(sentence.size(), size - 1);
  std::memcpy(text, sentence.data(), length);
  text[length] = 0;
}

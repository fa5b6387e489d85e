// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/call.h"

#include <cstring>

#include "core/base/list.h"
#include "core/base/scalar.h"
#include "core/base/view.h"
#include "core/base/object.h"
#include "core/runtime/stream_library.h"
#include "core/torch/aten/guards.h"
#include "core/torch/aten/spare_tensors.h"

namespace openaclnn::aten {
namespace {

template <class T>
[[noreturn, gnu::noinline]] void refuse_handle(const Parameter& parameter, const void* handle) {
  throw Refusal(c10::str(parameter.name, " ", handle, " was destroyed or never created"),
                {Reason::dead_handle, object_kind<T>()});
}

Tensor wrap(const Parameter& parameter, const aclTensor& tensor) {
  const at::IntArrayRef sizes(tensor.shape.at, static_cast<size_t>(tensor.shape.rank));
  const at::IntArrayRef strides(tensor.strides.at, static_cast<size_t>(tensor.strides.rank));
  const at::ScalarType dtype = scalar_type(tensor.dtype);
  const bool may_be_packed =
      !parameter.written || parameter.limits.numbers == Limits::Numbers::packed;
  if (tensor.dtype == ACL_INT4 && !may_be_packed)
    throw Refusal(std::string(parameter.name) + " is INT4, which only inputs may be");
  if (tensor.dtype == ACL_INT4 && tensor.offset % 2 != 0)
    throw Refusal(
        std::string(parameter.name) +
        " is INT4 and must begin with a whole byte, at an even offset, but its offset is " +
        std::to_string(tensor.offset));
  int64_t low = 0, high = 0;  // low is the offset
  if (!element_range(tensor, &low, &high))
    throw Refusal(c10::str(parameter.name,
                           " must have elements within 2^58 of its address, but has ", "shape ",
                           sizes, " with strides ", strides));
  const bool empty = c10::multiply_integers(sizes) == 0;
  if (empty) {
    const KernelsOnly guard;
    return at::empty_strided(sizes, strides, dtype);
  }
  if (tensor.data == nullptr)
    throw Refusal(std::string(parameter.name) + " has no data: its address is NULL");
  const auto bytes = static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t begin = tensor.dtype == ACL_INT4 ? tensor.offset / 2 : tensor.offset * bytes;
  char* first = static_cast<char*>(openaclnn_reachable(tensor.data)) + begin;
  const auto room = static_cast<size_t>((high - tensor.offset) * bytes);
  return tensor_of_memory(first, room, sizes, strides, dtype);
}

Tensor wrap(const Parameter& parameter, const void* handle) {
  const HandlePool<aclTensor>::Pin tensor(tensors(), handle);  // another thread may destroy it
  if (!tensor) refuse_handle<aclTensor>(parameter, handle);
  return wrap(parameter, *tensor);
}

template <class T>
T stored(const Scalar& scalar) {
  T value;
  std::memcpy(static_cast<void*>(&value), scalar.bytes, sizeof value);
  return value;
}

at::Scalar number(const Parameter& parameter, const Scalar& scalar) {
  switch (scalar.dtype) {
    case ACL_FLOAT: return stored<float>(scalar);
    case ACL_DOUBLE: return stored<double>(scalar);
    case ACL_FLOAT16: return stored<at::Half>(scalar);
    case ACL_BF16: return stored<at::BFloat16>(scalar);
    case ACL_INT64: return stored<int64_t>(scalar);
    case ACL_INT32: return stored<int32_t>(scalar);
    case ACL_INT16: return stored<int16_t>(scalar);
    case ACL_INT8: return stored<int8_t>(scalar);
    case ACL_UINT8: return stored<uint8_t>(scalar);
    case ACL_UINT64: return stored<uint64_t>(scalar);
    case ACL_BOOL: return stored<uint8_t>(scalar) != 0;
    case ACL_COMPLEX64: return stored<c10::complex<float>>(scalar);
    case ACL_COMPLEX128: return stored<c10::complex<double>>(scalar);
    default: break;
  }
  throw Refusal(c10::str(parameter.name, " has aclDataType ", static_cast<int>(scalar.dtype),
                         ", which has no torch dtype"),
                Reason::wrong_dtype);
}

at::Scalar number(const Parameter& parameter, const void* handle) {
  const HandlePool<aclScalar>::Pin scalar(scalars(), handle);
  if (!scalar) refuse_handle<aclScalar>(parameter, handle);
  return number(parameter, *scalar);
}

// Calls make(list), which another thread may destroy at any other time.
template <class T, class F>
auto with_list(HandlePool<T>& pool, const Parameter& parameter, const void* handle, F make) {
  const typename HandlePool<T>::Hold list(pool, handle);
  if (!list) refuse_handle<T>(parameter, handle);
  return make(*list);
}

IValue list_of_tensors(const Parameter& parameter, const aclTensorList& list) {
  c10::List<std::optional<Tensor>> made;
  for (const aclTensor* tensor : list) {
    made.push_back(tensor == nullptr ? std::nullopt : std::optional(wrap(parameter, tensor)));
  }
  return made;
}

// Adds the memory of the argument's tensors. A tensor with gaps counts as wholly written, and not
// as read.
void add_ranges(const Row& row, const Parameter& parameter, const Value& value,
                std::vector<Range>* ranges) {
  const bool moved = row.computed == Row::Computed::moved && !parameter.written;
  const auto add = [&](const aclTensor* handle) {
    const HandlePool<aclTensor>::Pin tensor(tensors(), handle);
    if (!tensor || tensor->data == nullptr || tensor->dtype == ACL_INT4) return;
    const auto bytes = static_cast<int64_t>(c10::elementSize(scalar_type(tensor->dtype)));
    const at::IntArrayRef sizes(tensor->shape.at, static_cast<size_t>(tensor->shape.rank));
    int64_t low = 0, high = 0;
    if (!element_range(*tensor, &low, &high) || low == high) return;
    if (!parameter.written && high - low != c10::multiply_integers(sizes)) return;
    const char* first = static_cast<const char*>(tensor->data) + low * bytes;
    ranges->push_back({parameter.name, first, static_cast<size_t>((high - low) * bytes),
                       parameter.written, moved});
  };
  if (value.pointer == nullptr) return;
  if (parameter.kind == Kind::tensor) add(static_cast<const aclTensor*>(value.pointer));
  if (parameter.kind != Kind::tensors) return;
  with_list(tensor_lists(), parameter, value.pointer, [&](const aclTensorList& list) {
    for (const aclTensor* tensor : list) add(tensor);
  });
}

// ATen adds such numbers to sizes, and takes those below -2^62 for handles of symbolic ones.
IValue numbers(const Parameter& parameter, const aclIntArray& list) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const bool any = parameter.limits.numbers == Limits::Numbers::unset;
  c10::List<int64_t> made;
  for (const int64_t number : list) {
    if (!any && (number < -kMost || number > kMost))
      throw Refusal(
          c10::str(parameter.name, " must have numbers from -2^40 to 2^40, but has ", number));
    made.push_back(number);
  }
  return made;
}

template <class To, class List>
IValue list_of(const List& list) {
  c10::List<To> made;
  for (const auto element : list) made.push_back(element);
  return made;
}

}  // namespace

at::ScalarType scalar_type(int64_t acl_dtype) {
  if (const auto known = scalar_type_of(acl_dtype)) return *known;
  const bool newer = acl_dtype >= ACL_HIFLOAT8 && acl_dtype <= ACL_FLOAT4_E1M2;
  throw Refusal(c10::str("aclDataType ", acl_dtype,
                         newer ? " exists on Ascend 950 only" : " has no torch dtype"),
                Reason::wrong_dtype);
}

IValue to_ivalue(const Parameter& parameter, const Value& value) {
  switch (parameter.kind) {
    case Kind::integer: return value.integer;
    case Kind::flag: return value.integer != 0;
    case Kind::real: return value.real;
    case Kind::dtype: return static_cast<int64_t>(scalar_type(value.integer));
    default: break;
  }
  const void* handle = value.pointer;
  if (handle == nullptr) return {};
  switch (parameter.kind) {
    case Kind::tensor: return wrap(parameter, handle);
    case Kind::tensors:
      return with_list(tensor_lists(), parameter, handle,
                       [&](const auto& list) { return list_of_tensors(parameter, list); });
    case Kind::scalar: return number(parameter, handle);
    case Kind::ints:
      return with_list(int_arrays(), parameter, handle,
                       [&](const auto& list) { return numbers(parameter, list); });
    case Kind::bools:
      return with_list(bool_arrays(), parameter, handle, list_of<bool, aclBoolArray>);
    case Kind::floats:
      return with_list(float_arrays(), parameter, handle, list_of<double, aclFloatArray>);
    case Kind::text: return std::string(static_cast<const char*>(handle));
    case Kind::scalars:
      return with_list(scalar_lists(), parameter, handle, [&](const aclScalarList& list) -> IValue {
        auto made = c10::impl::GenericList(c10::NumberType::get());
        for (const aclScalar* scalar : list) made.push_back(number(parameter, scalar));
        return made;
      });
    default: throw Refusal("internal error: unknown kind of argument", Reason::internal);
  }
}

void Call::take(const Parameter& parameter, const Value& value) {
  values.push_back(to_ivalue(parameter, value));
  if (row->overload == nullptr)  // a composite
    handles.push_back(parameter.kind == Kind::tensor ? value.pointer : nullptr);
  if (openaclnn_is_checked()) add_ranges(*row, parameter, value, &ranges);
}

}  // namespace openaclnn::aten

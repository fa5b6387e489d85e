// SPDX-License-Identifier: Apache-2.0
// The arguments of the older interface, aclop: descriptions of tensors, buffers and attributes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_base_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/support/handles.h"
#include "core/support/status.h"

namespace openaclnn {

// An attribute by its name: a text, a number or a list of numbers.
struct Attribute {
  std::string name, text;
  std::vector<int64_t> integers;
  std::vector<double> reals;
};

}  // namespace openaclnn

struct aclTensorDesc {
  aclDataType dtype;
  aclFormat format;
  std::vector<int64_t> dims;
  std::string name;
  aclFormat storage_format;
  std::vector<int64_t> storage_dims;
  aclMemType place = ACL_MEMTYPE_DEVICE;
  std::vector<std::pair<int64_t, int64_t>> ranges;  // of its dimensions
  void* constant = nullptr;  // the program's; what an operator may read on the host
  size_t constant_bytes = 0;

  aclTensorDesc(aclDataType its_dtype, aclFormat its_format, const std::vector<int64_t>& its_dims)
      : dtype(its_dtype),
        format(its_format),
        dims(its_dims),
        storage_format(its_format),
        storage_dims(its_dims) {}
};

struct aclDataBuffer {
  void* data;
  size_t size;

  aclDataBuffer(void* its_data, size_t its_size) : data(its_data), size(its_size) {}
};

struct aclopAttr {
  std::string text;  // "axis=1, keep_dims=true"
  std::vector<openaclnn::Attribute> values;
};

namespace openaclnn {
HandlePool<aclTensorDesc>& descriptions();
// Computes the bytes of a dense tensor. Returns false if they do not fit int64_t or the dtype has
// no size.
bool byte_count(const aclTensorDesc& description, size_t* bytes);
HandlePool<aclDataBuffer>& buffers();
HandlePool<aclopAttr>& attributes();

template <class T>
Status ended_object(const char* call, const char* argument, const T* handle) {
  return fail(ACL_ERROR_INVALID_PARAM, Reason::dead_handle, call,
              "%s %p was destroyed or never created", argument, static_cast<const void*>(handle));
}

// Holds the object while the call works on it: another thread may destroy it at any time. Who holds
// several takes the container before what is in it.
template <class T>
Status find_object(HandlePool<T>& pool, const char* call, const char* argument, const T* handle,
                   typename HandlePool<T>::Hold* found) {
  if (Status status = not_null(call, argument, handle); !status.ok()) return status;
  *found = typename HandlePool<T>::Hold(pool, handle);
  return *found ? Status() : ended_object(call, argument, handle);
}

template <class T, class F = void (*)(T&)>
aclError end_object(
    HandlePool<T>& pool, const char* call, const char* argument, const T* handle,
    F last = [](T&) {}) {
  Status status = not_null(call, argument, handle);
  if (status.ok() && !pool.destroy(handle, last)) status = ended_object(call, argument, handle);
  return status.code();
}

// An operator by type, as aclopCompileAndExecute gets it.
struct Typed {
  const char* type;
  int inputs;
  const aclTensorDesc* const* input_descriptions;
  const aclDataBuffer* const* sources;
  int outputs;
  const aclTensorDesc* const* output_descriptions;
  const aclDataBuffer* const* places;
  const aclopAttr* attribute;
  bool writes_shapes;  // data-dependent shapes go to output_descriptions
};

// Whether ATen has an operator of this type.
bool is_typed(const char* type);
// Runs the operator if ATen has it (typed_call.h). *known says whether the type exists.
Status run_typed(const char* call, const Typed& given, aclrtStream stream, bool* known);
}  // namespace openaclnn

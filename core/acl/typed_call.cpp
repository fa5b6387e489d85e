// SPDX-License-Identifier: Apache-2.0
#include "core/acl/typed_call.h"

#include <memory>
#include <vector>

#include "aclnn/acl_meta.h"
#include "core/acl/description.h"
#include "core/acl/backend.h"
#include "core/support/no_destructor.h"

namespace openaclnn {
namespace {

// The tensors of one call, destroyed with it.
class Handles {
 public:
  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    for (const void* handle : made_) {
      if (handle != nullptr) aclDestroyTensor(static_cast<const aclTensor*>(handle));
    }
  }

  // A description without a dtype is an omitted argument.
  Status add(const char* call, const char* type, const aclTensorDesc* described,
             const aclDataBuffer* held) {
    const HandlePool<aclTensorDesc>::Hold d(descriptions(), described);
    const HandlePool<aclDataBuffer>::Hold buffer(buffers(), held);
    if (!d || (!buffer && d->dtype != ACL_DT_UNDEFINED)) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::dead_handle, call,
                  "a description or buffer of %s was destroyed or never created", type);
    }
    if (d->dtype == ACL_DT_UNDEFINED) {
      made_.push_back(nullptr);
      return {};
    }
    size_t bytes = 0;
    if (!byte_count(*d, &bytes)) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_dtype, call,
                  "%s must have tensors that fit the address space, of a dtype with a size, "
                  "but got dtype %d and rank %zu",
                  type, static_cast<int>(d->dtype), d->dims.size());
    }
    if (bytes > buffer->size) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_memory, call,
                  "%s must have buffers of at least %zu bytes, but got %zu", type, bytes,
                  buffer->size);
    }
    std::vector<int64_t> strides(d->dims.size());
    int64_t count = 1;
    for (size_t i = strides.size(); i-- > 0;) {
      strides[i] = count;
      count *= d->dims[i];
    }
    const aclTensor* tensor =
        aclCreateTensor(d->dims.data(), d->dims.size(), d->dtype, strides.data(), 0, d->format,
                        d->dims.data(), d->dims.size(), buffer->data);
    if (tensor == nullptr) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_dtype, call,
                  "%s must have tensors that aclCreateTensor makes, but got dtype %d and rank "
                  "%zu",
                  type, static_cast<int>(d->dtype), d->dims.size());
    }
    made_.push_back(tensor);
    return {};
  }

  // Copies a shape that depends on data to its description.
  Status write_shape(const char* call, const Typed& given, int i) const {
    const auto* tensor = static_cast<const aclTensor*>(made_[i]);
    if (tensor == nullptr) return {};
    int64_t* dims = nullptr;
    uint64_t rank = 0;
    if (const Status status(aclGetViewShape(tensor, &dims, &rank)); !status.ok()) return status;
    const std::unique_ptr<int64_t[]> owned(dims);
    const std::vector<int64_t> shape(dims, dims + rank);
    const HandlePool<aclTensorDesc>::Hold description(descriptions(), given.output_descriptions[i]);
    if (!description || description->dims == shape) return {};
    if (!given.writes_shapes) {
      return fail(
          ACL_ERROR_INVALID_PARAM, Reason::not_supported, call,
          "the shape of an output of %s depends on the data; run it with aclopCompileAndExecuteV2",
          given.type);
    }
    description->dims = shape;
    return {};
  }

  const void* const* data() const { return made_.data(); }
  int count() const { return static_cast<int>(made_.size()); }

 private:
  std::vector<const void*> made_;
};

}  // namespace

namespace {

// nullptr without the backend.
RunTyped find_run() {
  static constinit NoDestructor<RunTyped> provided;
  return provided.get([] { return reinterpret_cast<RunTyped>(find_in_backend(kTypedFunction)); });
}

}  // namespace

bool is_typed(const char* type) {
  const RunTyped run = find_run();
  const TypedCall question = {type, nullptr, 0, nullptr, 0, nullptr, -1};
  return run != nullptr && run(&question, nullptr) == 0;
}

Status run_typed(const char* call, const Typed& given, aclrtStream stream, bool* known) {
  *known = is_typed(given.type);
  if (!*known) return {};
  const RunTyped run = find_run();
  Handles inputs, outputs;
  for (int i = 0; i < given.inputs; ++i) {
    const Status status =
        inputs.add(call, given.type, given.input_descriptions[i], given.sources[i]);
    if (!status.ok()) return status;
  }
  for (int i = 0; i < given.outputs; ++i) {
    const Status status =
        outputs.add(call, given.type, given.output_descriptions[i], given.places[i]);
    if (!status.ok()) return status;
  }
  std::vector<TypedAttribute> values;
  const HandlePool<aclopAttr>::Hold own(attributes(), given.attribute);
  if (own) {
    for (const Attribute& a : own->values)
      values.push_back(
          {a.name.c_str(), a.text.c_str(), a.integers.data(), a.reals.data(), a.integers.size()});
  }
  const TypedCall made = {given.type,
                          inputs.data(),
                          inputs.count(),
                          outputs.data(),
                          outputs.count(),
                          values.data(),
                          static_cast<int>(values.size())};
  Status status(run(&made, stream));
  for (int i = 0; i < given.outputs && status.ok(); ++i) {
    status = outputs.write_shape(call, given, i);
  }
  return status;
}

}  // namespace openaclnn

// SPDX-License-Identifier: Apache-2.0
// Operators by type name, the interface before aclnn. Implemented: Identity (a copy, with which
// torch_npu casts formats) and, under torch_npu, those of src/openaclnn/aten/types.txt. All others
// are refused.
#include <cstring>
#include <string>

#include "acl/acl_rt.h"
#include "core/npu/calls.h"
#include "core/npu/description.h"
#include "core/npu/queue.h"
#include "core/runtime/api_guard.h"

using namespace openaclnn;
using namespace openaclnn::npu;

namespace {

std::string shown(const aclTensorDesc* handle) {
  const aclTensorDesc* description = descriptions().find(handle);
  if (description == nullptr) return "?";
  std::string text = "[";
  for (const int64_t dim : description->dims) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dim);
  }
  return text + "]";
}

Status refuse(const char* call, const char* type, int inputs, const aclTensorDesc* const* given,
              const aclopAttr* attribute) {
  std::string tensors;
  for (int i = 0; i < inputs; ++i) tensors += (i > 0 ? ", " : "") + shown(given[i]);
  const aclopAttr* own = attributes().find(attribute);
  return fail(ACL_ERROR_OP_NOT_FOUND, Reason::not_supported, call,
              "opType %s is not supported (inputs %s%s%s); docs/npu_device.md lists the types that "
              "are, and aclnn functions reach more",
              type, tensors.c_str(), own == nullptr || own->text.empty() ? "" : " and ",
              own == nullptr ? "" : own->text.c_str());
}

Status identity(const char* call, const aclTensorDesc* from, const aclDataBuffer* source,
                const aclTensorDesc* to, const aclDataBuffer* target, aclrtStream stream) {
  const aclTensorDesc* in = descriptions().find(from);
  const aclTensorDesc* out = descriptions().find(to);
  const aclDataBuffer* data = buffers().find(source);
  const aclDataBuffer* place = buffers().find(target);
  if (in == nullptr || out == nullptr || data == nullptr || place == nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::dead_handle, call,
                "a description or buffer of Identity was destroyed or never created");
  }
  size_t bytes = 0;
  const bool counted = byte_count(*in, &bytes);
  if (in->dtype != out->dtype || !counted || bytes > data->size || bytes > place->size) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_memory, call,
                "Identity must have buffers of at least %zu bytes and one dtype, but got %zu "
                "bytes of dtype %d and %zu of dtype %d",
                bytes, data->size, static_cast<int>(in->dtype), place->size,
                static_cast<int>(out->dtype));
  }
  if (bytes == 0) return {};
  return Status(aclrtMemcpyAsync(place->data, place->size, data->data, bytes,
                                 ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
}

Status execute(const char* call, const char* type, int inputs,
               const aclTensorDesc* const* input_descriptions, const aclDataBuffer* const* given,
               int outputs, const aclTensorDesc* const* output_descriptions,
               const aclDataBuffer* const* places, const aclopAttr* attribute, bool writes_shapes,
               aclrtStream stream) {
  Status status = not_null(call, "opType", type);
  if (status.ok() && inputs > 0) status = not_null(call, "inputDesc", input_descriptions);
  if (!status.ok()) return status;
  if (std::strcmp(type, "Identity") != 0) {
    bool known = false;
    status = run_typed(call,
                       {type, inputs, input_descriptions, given, outputs, output_descriptions,
                        places, attribute, writes_shapes},
                       stream, &known);
    return known ? status : refuse(call, type, inputs, input_descriptions, attribute);
  }
  if (inputs != 1 || outputs != 1) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "Identity must have one input and one output, but got %d and %d", inputs, outputs);
  }
  status = not_null(call, "inputs", given);
  if (status.ok()) status = not_null(call, "outputDesc", output_descriptions);
  if (status.ok()) status = not_null(call, "outputs", places);
  if (!status.ok()) return status;
  return identity(call, input_descriptions[0], given[0], output_descriptions[0], places[0], stream);
}

template <class... Given>
aclError compile_and_execute(const char* call, aclrtStream stream, Given... given) {
  const Status status =
      guarded(call, ACL_ERROR_BAD_ALLOC, [&] { return execute(call, given..., stream); });
  return status.ok() ? ACL_SUCCESS : phase2_failed(status.code(), stream);
}

}  // namespace

aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                const aclTensorDesc* const inputDesc[],
                                const aclDataBuffer* const inputs[], int numOutputs,
                                const aclTensorDesc* const outputDesc[],
                                aclDataBuffer* const outputs[], const aclopAttr* attr, int, int,
                                const char*, aclrtStream stream) {
  return compile_and_execute("aclopCompileAndExecute", stream, opType, numInputs, inputDesc, inputs,
                             numOutputs, outputDesc, outputs, attr, false);
}

// The second form writes shapes that become known only by running to outputDesc.
aclError aclopCompileAndExecuteV2(const char* opType, int numInputs, aclTensorDesc* inputDesc[],
                                  aclDataBuffer* inputs[], int numOutputs,
                                  aclTensorDesc* outputDesc[], aclDataBuffer* outputs[],
                                  aclopAttr* attr, int, int, const char*, aclrtStream stream) {
  return compile_and_execute("aclopCompileAndExecuteV2", stream, opType, numInputs, inputDesc,
                             inputs, numOutputs, outputDesc, outputs, attr, true);
}

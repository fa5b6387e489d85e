// SPDX-License-Identifier: Apache-2.0
// Operators by type name, the interface before aclnn. Implemented: Identity (a copy, with which
// torch_npu casts formats) and, under torch_npu, those of src/openaclnn/aten/types.txt. All others
// are refused.
#include <algorithm>
#include <cstring>
#include <string>

#include "acl/acl_rt.h"
#include "acl/acl_op_compiler.h"
#include "core/acl/description.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"

using namespace openaclnn;

namespace {

std::string shown(const aclTensorDesc* handle) {
  const HandlePool<aclTensorDesc>::Hold description(descriptions(), handle);
  if (!description) return "?";
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
  const HandlePool<aclopAttr>::Hold own(attributes(), attribute);
  return fail(ACL_ERROR_OP_NOT_FOUND, Reason::not_supported, call,
              "opType %s is not supported (inputs %s%s%s); `openaclnn docs npu_device` lists "
              "those that are, and aclnn functions reach more",
              type, tensors.c_str(), !own || own->text.empty() ? "" : " and ",
              own ? own->text.c_str() : "");
}

Status identity(const char* call, const aclTensorDesc* from, const aclDataBuffer* source,
                const aclTensorDesc* to, const aclDataBuffer* target, aclrtStream stream) {
  struct Side {
    aclDataType dtype = ACL_DT_UNDEFINED;
    bool alive = false, counted = false;
    size_t bytes = 0, room = 0;
    void* data = nullptr;
  } sides[2];
  const std::pair<const aclTensorDesc*, const aclDataBuffer*> given[] = {{from, source},
                                                                         {to, target}};
  for (int i = 0; i < 2; ++i) {
    Side& side = sides[i];
    if (const HandlePool<aclTensorDesc>::Hold described(descriptions(), given[i].first);
        described) {
      side.alive = true;
      side.dtype = described->dtype, side.counted = byte_count(*described, &side.bytes);
    }
    const HandlePool<aclDataBuffer>::Hold held(buffers(), given[i].second);
    side.alive = side.alive && held;
    if (held) side.data = held->data, side.room = held->size;
  }
  const auto& [in, out] = sides;
  if (!in.alive || !out.alive) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::dead_handle, call,
                "a description or buffer of Identity was destroyed or never created");
  }
  if (in.dtype != out.dtype || !in.counted || in.bytes > in.room || in.bytes > out.room) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_memory, call,
                "Identity must have buffers of at least %zu bytes and one dtype, but got %zu "
                "bytes of dtype %d and %zu of dtype %d",
                in.bytes, in.room, static_cast<int>(in.dtype), out.room,
                static_cast<int>(out.dtype));
  }
  if (in.bytes == 0) return {};
  return Status(
      aclrtMemcpyAsync(out.data, out.room, in.data, in.bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
}

// A graph cannot record operators by type.
Status check_recordable(const char* call, aclrtStream handle) {
  PinnedStream stream;
  if (captures_alive == 0 || !find_stream(handle, &stream).ok()) return {};
  return check_not_captured(call, *stream, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                            "call an aclnn function instead");
}

constexpr int kMostTensors = 1 << 16;

Status execute(const char* call, const char* type, int inputs,
               const aclTensorDesc* const* input_descriptions, const aclDataBuffer* const* given,
               int outputs, const aclTensorDesc* const* output_descriptions,
               const aclDataBuffer* const* places, const aclopAttr* attribute, bool writes_shapes,
               aclrtStream stream) {
  Status status = not_null(call, "opType", type);
  if (status.ok() && (inputs < 0 || outputs < 0 || std::max(inputs, outputs) > kMostTensors)) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "numInputs and numOutputs must be in [0, %d], but got %d and %d", kMostTensors,
                inputs, outputs);
  }
  if (status.ok() && inputs > 0) status = not_null(call, "inputDesc", input_descriptions);
  if (status.ok() && inputs > 0) status = not_null(call, "inputs", given);
  if (status.ok() && outputs > 0) status = not_null(call, "outputDesc", output_descriptions);
  if (status.ok() && outputs > 0) status = not_null(call, "outputs", places);
  if (status.ok()) status = check_recordable(call, stream);
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
  return identity(call, input_descriptions[0], given[0], output_descriptions[0], places[0], stream);
}

template <class... Given>
aclError execute_guarded(const char* call, Given... given) {
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] { return execute(call, given...); }).code();
}

}  // namespace

struct aclGraphDumpOption {};

aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                const aclTensorDesc* const* inputDesc,
                                const aclDataBuffer* const* inputs, int numOutputs,
                                const aclTensorDesc* const* outputDesc,
                                aclDataBuffer* const* outputs, const aclopAttr* attr,
                                aclopEngineType, aclopCompileType, const char*,
                                aclrtStream stream) {
  return execute_guarded("aclopCompileAndExecute", opType, numInputs, inputDesc, inputs, numOutputs,
                         outputDesc, outputs, attr, false, stream);
}

aclError aclopCompileAndExecuteV2(const char* opType, int numInputs, aclTensorDesc** inputDesc,
                                  aclDataBuffer** inputs, int numOutputs,
                                  aclTensorDesc** outputDesc, aclDataBuffer** outputs,
                                  aclopAttr* attr, aclopEngineType, aclopCompileType, const char*,
                                  aclrtStream stream) {
  return execute_guarded("aclopCompileAndExecuteV2", opType, numInputs, inputDesc, inputs,
                         numOutputs, outputDesc, outputs, attr, true, stream);
}

aclError aclopExecuteV2(const char* opType, int numInputs, aclTensorDesc** inputDesc,
                        aclDataBuffer** inputs, int numOutputs, aclTensorDesc** outputDesc,
                        aclDataBuffer** outputs, aclopAttr* attr, aclrtStream stream) {
  return execute_guarded("aclopExecuteV2", opType, numInputs, inputDesc, inputs, numOutputs,
                         outputDesc, outputs, attr, true, stream);
}

aclError aclopCompile(const char* opType, int numInputs, const aclTensorDesc* const* inputDesc, int,
                      const aclTensorDesc* const*, const aclopAttr* attr, aclopEngineType,
                      aclopCompileType, const char*) {
  constexpr const char* call = "aclopCompile";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    Status status = not_null(call, "opType", opType);
    if (status.ok() && numInputs > 0) status = not_null(call, "inputDesc", inputDesc);
    if (!status.ok() || std::strcmp(opType, "Identity") == 0 || is_typed(opType)) {
      return status.code();
    }
    return refuse(call, opType, numInputs, inputDesc, attr).code();
  });
}

aclError aclopSetModelDir(const char* modelDir) {
  return not_null("aclopSetModelDir", "modelDir", modelDir).code();
}

aclGraphDumpOption* aclCreateGraphDumpOpt(void) {
  aclGraphDumpOption* made = pool_of<aclGraphDumpOption>(1 << 10).create();
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, "aclCreateGraphDumpOpt",
              "too many live objects")
      .null();
}

aclError aclDestroyGraphDumpOpt(const aclGraphDumpOption* graphDumpOpt) {
  HandlePool<aclGraphDumpOption>& pool = pool_of<aclGraphDumpOption>(1 << 10);
  return end_object(pool, "aclDestroyGraphDumpOpt", "graphDumpOpt", graphDumpOpt);
}

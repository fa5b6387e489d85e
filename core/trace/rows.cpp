// SPDX-License-Identifier: Apache-2.0
// The traced form of the operators that ATen computes, by their rows.
#include <string>

#include "core/aten/traced.h"
#include "core/trace/call.h"
#include "core/trace/name.h"
#include "core/trace/show.h"

namespace openaclnn::trace {
namespace {

using aten::Row;
using aten::Value;

std::string shown(const aten::Parameter& parameter, const Value& value) {
  switch (parameter.kind) {
    case aten::Kind::tensor: return show(static_cast<const aclTensor*>(value.pointer));
    case aten::Kind::scalar: return show(static_cast<const aclScalar*>(value.pointer));
    case aten::Kind::text: return show(static_cast<const char*>(value.pointer));
    case aten::Kind::integer: return show(value.integer);
    case aten::Kind::real: return show(value.real);
    case aten::Kind::flag: return show(value.integer != 0);
    case aten::Kind::dtype: return show(static_cast<aclDataType>(value.integer));
    default: return show(value.pointer);
  }
}

int32_t plan(const Row& row, const Value* values, uint64_t* workspace_size, void** executor,
             aten::PlanCall real, aten::DropCall drop) {
  Call call(lasting(std::string(row.name) + "GetWorkspaceSize"));
  size_t count = 0;
  for (int i = 0; i < row.parameter_count; ++i) {
    const aten::Parameter& parameter = row.parameters[i];
    if (row.inplace && parameter.written) continue;
    call.set(count++, parameter.name, shown(parameter, values[i]));
    if (parameter.kind == aten::Kind::tensor)
      call.tensor(parameter.name, static_cast<const aclTensor*>(values[i].pointer));
    if (parameter.kind == aten::Kind::tensors)
      call.tensors(parameter.name, static_cast<const aclTensorList*>(values[i].pointer));
  }
  call.judge(
      row.name,
      [&](uint64_t* size, aclOpExecutor** made) {
        return real(row, values, size, reinterpret_cast<void**>(made));
      },
      drop);
  call.begin();
  const int32_t result = real(row, values, workspace_size, executor);
  call.end();
  const bool good = result == 0;
  call.set(count++, "workspaceSize", good ? show_result(workspace_size) : "not written");
  call.set(count++, "executor", good ? show_result(executor) : "not written");
  if (good) call.plans(static_cast<const aclOpExecutor*>(*executor));
  call.returned(show(result), good);
  return result;
}

int32_t run(const Row& row, void* workspace, uint64_t workspace_size, void* executor, void* stream,
            aten::RunCall real) {
  Call call(row.name);
  call.set(0, "workspace", show(static_cast<const void*>(workspace)));
  call.set(1, "workspaceSize", show(workspace_size));
  call.set(2, "executor", show(static_cast<const void*>(executor)));
  call.set(3, "stream", show_stream(stream));
  call.submits(stream, static_cast<const aclOpExecutor*>(executor));
  call.begin();
  const int32_t result = real(row, workspace, workspace_size, executor, stream);
  call.end();
  call.returned(show(result), result == 0);
  return result;
}

}  // namespace
}  // namespace openaclnn::trace

extern "C" __attribute__((visibility("default")))
const openaclnn::aten::Tracer openaclnn_trace_rows = {openaclnn::trace::plan,
                                                      openaclnn::trace::run};

// SPDX-License-Identifier: Apache-2.0
#include "core/trace/python_call.h"

#include <string>

#include "core/base/scalar.h"
#include "core/base/tensor.h"
#include "core/runtime/work_listener.h"
#include "core/trace/name.h"
#include "core/trace/recorder.h"
#include "core/trace/show.h"

namespace openaclnn::trace {
namespace {

std::string shown(const Parameter& parameter, const Argument& argument) {
  switch (parameter.kind) {
    case Kind::tensor: {
      const Tensor* const t = argument.tensor;
      if (t == nullptr) return "NULL";
      return show_view(t->dtype, t->shape.at, t->strides.at, t->shape.rank, t->data);
    }
    case Kind::scalar:
      return argument.scalar == nullptr
                 ? "NULL"
                 : show_scalar(argument.scalar->bytes, argument.scalar->dtype);
    case Kind::real: return show(argument.real);
    case Kind::integer: return show(argument.integer);
    case Kind::flag: return show(argument.flag);
    case Kind::text: return show(argument.text);
  }
  return "";
}

Arguments arguments_of(const PythonCall& call) {
  if (call.arguments == nullptr) return Recorder::get().arguments_of(call.plan);
  Arguments arguments;
  for (int i = 0; i < call.op.parameter_count; ++i)
    arguments.emplace_back(call.op.parameters[i].name, call.arguments[i]);
  return arguments;
}

int64_t now() {
  (void)Recorder::get();
  return steady_nanoseconds();
}

uint64_t submit(const Operator& op, const aclOpExecutor* plan, const void* stream) {
  return Recorder::get().submit(op.name, stream, plan, {});
}

void record(const PythonCall& call) {
  Recorder& recorder = Recorder::get();
  Arguments arguments = arguments_of(call);
  const bool good = call.raised == nullptr;
  if (call.plans && good) recorder.know_plan(call.plan, arguments);
  if (call.stream != nullptr) {
    const std::string number = std::to_string(recorder.stream_number(call.stream));
    arguments.emplace_back("stream", "stream " + number);
  }
  arguments.emplace_back("file", call.file);
  arguments.emplace_back("line", show(call.line));
  if (call.submission != 0 && !good) recorder.withdraw(call.submission);
  recorder.called(lasting(std::string(call.op.name) + (call.plans ? "GetWorkspaceSize" : "")),
                  arguments, good ? "done" : std::string("raised ") + call.raised, call.begin,
                  call.end, good ? call.submission : 0, !good);
}

}  // namespace
}  // namespace openaclnn::trace

extern "C" __attribute__((visibility("default")))
const openaclnn::trace::PythonTracer openaclnn_trace_python = {
    openaclnn::trace::now, openaclnn::trace::shown, openaclnn::trace::submit,
    openaclnn::trace::record};

// SPDX-License-Identifier: Apache-2.0
#include "core/trace/python_call.h"

#include <mutex>
#include <set>
#include <string>

#include "core/base/scalar.h"
#include "core/base/tensor.h"
#include "core/runtime/immortal.h"
#include "core/runtime/timeline.h"
#include "core/trace/recorder.h"
#include "core/trace/show.h"

namespace openaclnn::trace {
namespace {

// A trace keeps the names of its calls.
const char* kept(std::string name) {
  struct Names {
    std::mutex mutex;
    std::set<std::string> known;
  };
  static Immortal<Names> names;
  const std::lock_guard lock((*names).mutex);
  return (*names).known.insert(std::move(name)).first->c_str();
}

std::string shown(const Dims& dims) {
  return show_array(dims.at, static_cast<uint64_t>(dims.rank));
}

// As tensors of C programs are shown, whose handles are asked instead.
std::string shown(const Tensor* tensor) {
  if (tensor == nullptr) return "NULL";
  int64_t expected = 1;
  bool contiguous = true;
  for (int i = tensor->shape.rank; i-- > 0;) {
    contiguous &= tensor->shape[i] == 1 || tensor->strides[i] == expected;
    expected *= tensor->shape[i];
  }
  std::string text = std::string(dtype_name(tensor->dtype)) + " " + shown(tensor->shape);
  if (!contiguous) text += " strides " + shown(tensor->strides);
  return text + " at " + show(static_cast<const void*>(tensor->data));
}

std::string shown(const Parameter& parameter, const Argument& argument) {
  switch (parameter.kind) {
    case Kind::tensor: return shown(argument.tensor);
    case Kind::scalar:
      return argument.scalar == nullptr
                 ? "NULL"
                 : show_scalar(argument.scalar->bytes, argument.scalar->dtype);
    case Kind::double_: return show(argument.real);
    case Kind::int64: return show(argument.integer);
    case Kind::bool_: return show(argument.flag);
    case Kind::text: return show(argument.text);
  }
  return "";
}

int64_t now() {
  (void)Recorder::get();
  return steady_nanoseconds();
}

void record(const PythonCall& call) {
  Arguments arguments;
  for (int i = 0; call.arguments != nullptr && i < call.op.parameter_count; ++i) {
    const Parameter& parameter = call.op.parameters[i];
    arguments.emplace_back(parameter.name, shown(parameter, call.arguments[i]));
  }
  arguments.emplace_back("file", call.file);
  arguments.emplace_back("line", show(call.line));
  const std::string name = std::string(call.op.name) + (call.plans ? "GetWorkspaceSize" : "");
  Recorder::get().called(kept(name), arguments,
                         call.raised == nullptr ? "done" : std::string("raised ") + call.raised,
                         call.begin, call.end, 0);
}

}  // namespace
}  // namespace openaclnn::trace

extern "C" __attribute__((visibility("default")))
const openaclnn::trace::PythonTracer openaclnn_trace_python = {openaclnn::trace::now,
                                                               openaclnn::trace::record};

// SPDX-License-Identifier: Apache-2.0
// The traced form of direct calls (core/ops/direct.h), which the operators of openaclnn.torch and
// openaclnn.jax make: this library is preloaded, so it is found before the core.
#include <dlfcn.h>

#include <string>

#include "core/ops/direct.h"
#include "core/ops/operator.h"
#include "core/runtime/status.h"
#include "core/runtime/timeline.h"
#include "core/trace/recorder.h"
#include "core/trace/show.h"

namespace openaclnn::trace {
namespace {

std::string shown(const Parameter& parameter, const openaclnn_value& value) {
  switch (parameter.kind) {
    case Kind::tensor: {
      const openaclnn_view* const t = value.tensor;
      if (t == nullptr) return "NULL";
      return show_view(static_cast<aclDataType>(t->dtype), t->shape, t->strides, t->rank, t->data);
    }
    case Kind::scalar: return show_scalar(&value.real, ACL_DOUBLE);
    case Kind::double_: return show(value.real);
    case Kind::int64: return show(value.integer);
    case Kind::bool_: return show(value.integer != 0);
    case Kind::text: return show(value.text);
  }
  return "";
}

void record(const openaclnn_operator* handle, const openaclnn_value* values, int32_t result,
            int64_t begin) {
  const int64_t end = steady_nanoseconds();
  const auto& op = *reinterpret_cast<const Operator*>(handle);
  Arguments arguments;
  for (int i = 0; i < op.parameter_count; ++i)
    arguments.emplace_back(op.parameters[i].name, shown(op.parameters[i], values[i]));
  std::string text = show(result);
  if (result != 0) {
    char sentence[1000];
    openaclnn_newest_sentence(sentence, sizeof sentence);
    text += std::string(": ") + sentence;
  }
  Recorder::get().called(op.name, arguments, text, begin, end, 0);
}

using DirectCall = decltype(openaclnn_call);

int32_t traced(DirectCall* real, const openaclnn_operator* op, const openaclnn_value* values) {
  (void)Recorder::get();
  const int64_t begin = steady_nanoseconds();
  const int32_t result = real(op, values);
  record(op, values, result, begin);
  return result;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace openaclnn::trace

using namespace openaclnn;
using namespace openaclnn::trace;

extern "C" __attribute__((visibility("default"))) int32_t
openaclnn_call(const openaclnn_operator* op, const openaclnn_value* values) {
  static DirectCall* const core = real<DirectCall>("openaclnn_call");
  return traced(core, op, values);
}

extern "C" __attribute__((visibility("default"))) int32_t
openaclnn_call_for_xla(const openaclnn_operator* op, const openaclnn_value* values) {
  static DirectCall* const core = real<DirectCall>("openaclnn_call_for_xla");
  return traced(core, op, values);
}

// Shown only where it refuses the call that would have followed.
extern "C" __attribute__((visibility("default"))) int32_t
openaclnn_infer(const openaclnn_operator* op, const openaclnn_value* values, int32_t output,
                int32_t* dtype, int32_t* rank, int64_t* shape) {
  static auto* const core = real<decltype(openaclnn_infer)>("openaclnn_infer");
  (void)Recorder::get();
  const int64_t begin = steady_nanoseconds();
  const int32_t result = core(op, values, output, dtype, rank, shape);
  if (result != 0) record(op, values, result, begin);
  return result;
}

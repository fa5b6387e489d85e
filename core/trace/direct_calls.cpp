// SPDX-License-Identifier: Apache-2.0
// The traced form of direct calls (core/ops/direct.h), which the operators of openaclnn.torch and
// openaclnn.jax make: this library is preloaded, so it is found before the core.
#include <dlfcn.h>

#include <string>

#include "core/ops/direct.h"
#include "core/support/no_destructor.h"
#include "core/trace/call.h"
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
    case Kind::real: return show(value.real);
    case Kind::integer: return show(value.integer);
    case Kind::flag: return show(value.integer != 0);
    case Kind::text: return show(value.text);
  }
  return "";
}

void set_arguments(Call& call, const Row& op, const openaclnn_value* values) {
  for (int i = 0; i < op.parameter_count; ++i)
    call.set(static_cast<size_t>(i), op.parameters[i].name, shown(op.parameters[i], values[i]));
}

using DirectCall = decltype(openaclnn_call);

int32_t traced(DirectCall* real, const Row* op, const openaclnn_value* values) {
  Call call(op->name);
  set_arguments(call, *op, values);
  call.begin();
  const int32_t result = real(op, values);
  call.end();
  call.returned(show(result), result == 0);
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
openaclnn_call(const Row* op, const openaclnn_value* values) {
  static constinit NoDestructor<DirectCall*> core;
  return traced(core.get([] { return real<DirectCall>("openaclnn_call"); }), op, values);
}

extern "C" __attribute__((visibility("default"))) int32_t
openaclnn_call_for_xla(const Row* op, const openaclnn_value* values) {
  static constinit NoDestructor<DirectCall*> core;
  return traced(core.get([] { return real<DirectCall>("openaclnn_call_for_xla"); }), op, values);
}

// Shown only if it refuses the call.
extern "C" __attribute__((visibility("default"))) int32_t
openaclnn_infer(const Row* op, const openaclnn_value* values, int32_t output, int32_t* dtype,
                int32_t* rank, int64_t* shape) {
  using Infer = decltype(openaclnn_infer);
  static constinit NoDestructor<Infer*> core;
  Call call(op->name);
  call.begin();
  Infer* const infer = core.get([] { return real<Infer>("openaclnn_infer"); });
  const int32_t result = infer(op, values, output, dtype, rank, shape);
  call.end();
  if (result == 0) return result;
  set_arguments(call, *op, values);
  call.returned(show(result), false);
  return result;
}

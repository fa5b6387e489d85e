// SPDX-License-Identifier: Apache-2.0
// How the Python package, which makes its calls without the C functions, shows them to
// `openaclnn trace`.
#pragma once

#include <cstdint>

#include "core/ops/operator.h"

namespace openaclnn::trace {

struct PythonCall {
  const Operator& op;
  bool plans;                 // phase 1 alone, for a plan
  const Argument* arguments;  // nullptr for a plan that runs
  const char* file;           // the line of the program that made the call
  int64_t line;
  const char* raised;  // the exception as text; nullptr for none
  int64_t begin, end;
};

struct PythonTracer {
  int64_t (*now)();  // a trace begins with its first call
  void (*record)(const PythonCall& call);
};
inline constexpr char kPythonTracer[] = "openaclnn_trace_python";

}  // namespace openaclnn::trace

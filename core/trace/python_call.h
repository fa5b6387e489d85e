// SPDX-License-Identifier: Apache-2.0
// Calls of the Python package, which bypass the C functions, as `openaclnn trace` gets them.
#pragma once

#include <cstdint>
#include <string>

#include "core/ops/operator.h"

namespace openaclnn::trace {

struct PythonCall {
  const Operator& op;
  bool plans;                    // phase 1 alone, for a plan
  const std::string* arguments;  // as text; nullptr for a plan that runs
  const aclOpExecutor* plan;     // the plan that is made or runs; nullptr for none
  const void* stream;            // of the run; nullptr: synchronous
  uint64_t submission;           // what submit returned; 0 for none
  const char* file;              // the line of the program that made the call
  int64_t line;
  const char* raised;  // the exception as text; nullptr for none
  int64_t begin, end;
};

struct PythonTracer {
  int64_t (*now)();  // a trace begins with its first call
  std::string (*show)(const Parameter& parameter, const Argument& argument);
  // Announces that the plan will run on the stream.
  uint64_t (*submit)(const Operator& op, const aclOpExecutor* plan, const void* stream);
  void (*record)(const PythonCall& call);
};
inline constexpr char kPythonTracer[] = "openaclnn_trace_python";

}  // namespace openaclnn::trace

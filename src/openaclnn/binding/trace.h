// SPDX-License-Identifier: Apache-2.0
// Shows calls of Python programs to `openaclnn trace`.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <span>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/ops/operator.h"
#include "core/runtime/stream.h"
#include "core/trace/python_call.h"

namespace openaclnn::python {

// The data of a shown call.
struct Traced {
  const Operator& op;
  bool plans = false;                      // phase 1 alone
  std::span<PyObject* const> values = {};  // as given
  const Executor* plan = nullptr;
  const Stream* stream = nullptr;
  std::vector<std::string> texts = {};  // of the arguments of phase 1, once there are any

  void converted(const Argument* arguments);
};

// nullptr unless this process is traced.
const trace::PythonTracer* tracer();

uint64_t submit(const Traced& call);

// Adds the line of the program that made the call, and the exception that the call raises.
void record(const Traced& call, uint64_t submission, int64_t begin, std::exception_ptr raised);

// Runs work(), and shows it if this process is traced. work() adds to `call` the arguments that it
// has converted.
template <class F>
void traced(const Traced& call, F work) {
  const trace::PythonTracer* const found = tracer();
  if (found == nullptr) [[likely]]
    return work();
  const uint64_t submission = call.stream == nullptr ? 0 : submit(call);
  const int64_t begin = found->now();
  try {
    work();
  } catch (...) {
    record(call, submission, begin, std::current_exception());
    throw;
  }
  record(call, submission, begin, nullptr);
}

}  // namespace openaclnn::python

// SPDX-License-Identifier: Apache-2.0
// Shows calls of Python programs to `openaclnn trace`.
#pragma once

#include <nanobind/nanobind.h>

#include "core/ops/operator.h"
#include "core/trace/python_call.h"

namespace openaclnn::python {

// nullptr unless this process is traced.
const trace::PythonTracer* tracer();

// Adds the line of the program that made the call, and the exception that the call raises.
void record(const Operator& op, bool plans, const Argument* arguments, int64_t begin,
            const nanobind::python_error* raised);

// work(), which is shown if this process is traced. `plans`: it is phase 1 alone. Running a plan
// has no arguments.
template <class F>
void traced(const Operator& op, bool plans, const Argument* arguments, F work) {
  const trace::PythonTracer* const found = tracer();
  if (found == nullptr) [[likely]]
    return work();
  const int64_t begin = found->now();
  try {
    work();
  } catch (const nanobind::python_error& error) {
    record(op, plans, arguments, begin, &error);
    throw;
  }
  record(op, plans, arguments, begin, nullptr);
}

}  // namespace openaclnn::python

// SPDX-License-Identifier: Apache-2.0
// The binding: one generic launch for every operator, so its size does not grow with the table, and
// the settings.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <new>
#include <span>

#include "arrays.h"
#include "call.h"
#include "metadata.h"
#include "plan.h"
#include "trace.h"
#include "aclnn/aclnn_base.h"
#include "core/base/executor.h"
#include "core/ops/isa.h"
#include "core/ops/operator.h"
#include "core/ops/streaming.h"
#include "core/runtime/device.h"
#include "core/runtime/device_memory.h"
#include "core/support/environment.h"
#include "core/memory/memory.h"
#include "core/support/parallel.h"
#include "core/support/product.h"

namespace openaclnn::python {
namespace {

// Other Python threads may run if the work takes longer than a switch between threads.
void run_here(const Executor& executor, void* workspace) {
  if (executor.brief()) {
    executor.run_with_enough_stack(workspace);
  } else {
    nb::gil_scoped_release release;
    executor.run_with_enough_stack(workspace);
  }
}

nb::object compute(const Operator& op, std::span<PyObject* const> values, Traced* shown) {
  Call call(op, values, Outputs::allocate_missing, Keep::nothing);
  if (shown != nullptr) [[unlikely]]
    shown->converted(call.arguments());
  Executor executor(&op);
  check(plan(op, call.arguments(), executor));
  const Workspace workspace(executor.workspace_size());
  run_here(executor, workspace.data());
  call.torch().bump_versions();
  return call.take_result();
}

nb::object launch(const Operator& op, std::span<PyObject* const> values) {
  if (tracer() == nullptr) [[likely]]
    return compute(op, values, nullptr);
  Traced shown{.op = op, .values = values};
  nb::object result;
  traced(shown, [&] { result = compute(op, values, &shown); });
  return result;
}

// launch(index, *values) is called directly by CPython: as a function of nanobind it would gather
// the values in a tuple (100 of 490 ns).
PyObject* launch_method(PyObject*, PyObject* const* given, Py_ssize_t count) {
  try {
    if (count == 0) throw nb::type_error("launch needs the index of an operator");
    const long index = PyLong_AsLong(given[0]);
    if (index == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return launch(operator_at(index), {given + 1, given + count}).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(error.type() == nb::exception_type::type_error    ? PyExc_TypeError
                    : error.type() == nb::exception_type::index_error ? PyExc_IndexError
                                                                      : PyExc_RuntimeError,
                    error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

nb::dict config() {
  nb::dict values;
  values["version"] = OPENACLNN_VERSION;
  values["product"] = products[current_product()].key;
  values["kernels"] = kernels().isa;
  values["threads"] = num_threads();
  values["torch_threads"] = torch_threads();
  values["streaming_bytes"] = streaming_threshold();
  values["devices"] = device_count();
  values["device_memory"] = device_memory();
#if defined(__clang__)
  values["compiler"] = __VERSION__;  // begins with its name
#else
  values["compiler"] = "GCC " __VERSION__;
#endif
  return values;
}

}  // namespace
}  // namespace openaclnn::python

NB_MODULE(_core, m) {
  using namespace openaclnn;
  using namespace openaclnn::python;
  init_arrays();
  // Objects that a daemon thread still holds when the process ends are not freed; they are not
  // leaks. The tests, which look for leaks, turn reports on.
  nb::set_leak_warnings(false);
  m.doc() = "The compiled core; the public names are those of openaclnn.";

  static PyMethodDef functions[] = {
      {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&launch_method)),
       METH_FASTCALL, "launch(index, *values): phase 1 and phase 2 of an operator at once."},
      {}};
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw nb::python_error();
  define_plans(m);
  define_metadata(m);
  m.attr("version") = OPENACLNN_VERSION;
  m.def("config", &config);
  m.def("product", [] { return products[current_product()].key; });
  m.def("chip_hint", &chip_hint, nb::arg("text"));
  m.def("variable_problem", &variable_problem, nb::arg("name"), nb::arg("value"));
  m.def("report_leaks", &nb::set_leak_warnings, nb::arg("wanted"));
  m.def("set_product", [](const char* key) { check(set_product(key)); }, nb::arg("key"));
  m.def("set_num_threads", &set_num_threads, nb::arg("count"));
  m.def("set_streaming_bytes", &set_streaming_threshold, nb::arg("bytes"));
}

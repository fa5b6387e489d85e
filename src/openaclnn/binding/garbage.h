// SPDX-License-Identifier: Apache-2.0
// A class of the binding takes part in garbage collection if it has traverse(visit, data) and
// clear().
#pragma once

#include <nanobind/nanobind.h>

namespace openaclnn::python {

namespace nb = nanobind;

// The collector may run before an object is complete.
template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->traverse(visit, arg) : 0;
}

template <class T>
int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<T>(self)->clear();
  return 0;
}

template <class T>
nb::type_slots collected() {
  static const PyType_Slot slots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(&traverse<T>)},
      {Py_tp_clear, reinterpret_cast<void*>(&clear<T>)},
      {},
  };
  return nb::type_slots(slots);
}

}  // namespace openaclnn::python

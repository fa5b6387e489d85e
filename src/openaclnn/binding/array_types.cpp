// SPDX-License-Identifier: Apache-2.0
#include "array_types.h"

#include <cstdint>
#include <vector>

#include "dlpack.h"

namespace openaclnn::python {
namespace {

struct DLPackExchange {
  uint32_t major, minor;
  DLPackExchange* previous;
  void *allocate, *to_managed, *from_managed;
  Exchange view;
};

struct Known {
  ArrayType facts;
  PyObject* reference;  // weak; its callback removes the entry
};

std::vector<Known>& known_types() {
  static auto& types = *new std::vector<Known>;
  return types;
}

PyObject* forget(PyObject*, PyObject* reference) {
  std::erase_if(known_types(), [&](const Known& known) { return known.reference == reference; });
  Py_DECREF(reference);
  Py_RETURN_NONE;
}

void remember(const ArrayType& facts) {
  static PyMethodDef definition = {"forget", &forget, METH_O, nullptr};
  const nb::object callback = nb::steal(PyCFunction_New(&definition, nullptr));
  if (!callback.is_valid()) throw nb::python_error();
  PyObject* reference = PyWeakref_NewRef(reinterpret_cast<PyObject*>(facts.type), callback.ptr());
  if (reference == nullptr) throw nb::python_error();
  known_types().push_back({facts, reference});
}

bool is_torch_type(PyTypeObject* type) {
  PyObject* torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (torch == nullptr) return false;
  const nb::object tensor = attribute(torch, "Tensor");
  return tensor.is_valid() && PyType_Check(tensor.ptr()) &&
         PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(tensor.ptr())) != 0;
}

Exchange exchange_of(nb::handle type) {
  constexpr const char* kName = "dlpack_exchange_api";
  const nb::object capsule = attribute(type, "__dlpack_c_exchange_api__");
  if (!capsule.is_valid() || PyCapsule_IsValid(capsule.ptr(), kName) == 0) return nullptr;
  const auto* table = static_cast<DLPackExchange*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  while (table != nullptr && table->major != 1) table = table->previous;
  return table == nullptr ? nullptr : table->view;
}

}  // namespace

ArrayType type_of(nb::handle array) {
  PyTypeObject* type = Py_TYPE(array.ptr());
  for (const Known& known : known_types()) {
    if (known.facts.type == type) return known.facts;
  }
  const nb::handle handle = reinterpret_cast<PyObject*>(type);
  ArrayType found{type, exchange_of(handle), is_torch_type(type), false};
  if (found.is_torch) {
    found.is_plain = nb::cast<bool>(
        nb::module_::import_("openaclnn.binding.torch_refusals").attr("is_plain")(handle));
  }
  remember(found);
  return found;
}

}  // namespace openaclnn::python

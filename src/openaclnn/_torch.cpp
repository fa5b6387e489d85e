// SPDX-License-Identifier: Apache-2.0
#include "_torch.h"

namespace openaclnn::python {

void TorchTensors::add(nb::handle tensor, void* data, bool written) {
  tensors_.push_back({nb::borrow(tensor), data});
  if (!written) return;
  static PyObject* const is_inference = PyUnicode_InternFromString("is_inference");
  const nb::object answer = nb::steal(PyObject_CallMethodNoArgs(tensor.ptr(), is_inference));
  if (!answer.is_valid()) throw nb::python_error();
  if (answer.is(Py_True)) return;  // those have no version counter
  if (!written_.is_valid()) written_ = nb::list();
  nb::borrow<nb::list>(written_).append(tensor);
}

bool TorchTensors::moved() const {
  static PyObject* const data_ptr = PyUnicode_InternFromString("data_ptr");
  for (const Tensor& tensor : tensors_) {
    const nb::object now = nb::steal(PyObject_CallMethodNoArgs(tensor.object.ptr(), data_ptr));
    if (!now.is_valid()) throw nb::python_error();
    if (PyLong_AsVoidPtr(now.ptr()) != tensor.data) return true;
  }
  return false;
}

// One call for all: 0.4 us for three tensors, 0.9 one by one; one alone, without a list, 0.2.
void TorchTensors::tell_autograd() const {
  if (!written_.is_valid()) return;
  static const nb::object& increment =
      *new nb::object(nb::module_::import_("torch.autograd.graph").attr("increment_version"));
  const auto all = nb::borrow<nb::list>(written_);
  increment(all.size() == 1 ? nb::object(all[0]) : nb::object(all));
}

}  // namespace openaclnn::python

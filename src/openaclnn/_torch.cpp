// SPDX-License-Identifier: Apache-2.0
#include "_torch.h"

#include "_arrays.h"

namespace openaclnn::python {
namespace {

PyObject* kept_for_good(nb::object object) { return object.release().ptr(); }

// What is asked of every tensor of every call, from torch.Tensor itself: looking a name up in the
// tensor first costs 20 ns each.
PyObject* of_tensor(const char* name) {
  return kept_for_good(nb::module_::import_("torch").attr("Tensor").attr(name));
}

nb::object ask(PyObject* method, nb::handle tensor) {
  const nb::object answer = nb::steal(PyObject_CallOneArg(method, tensor.ptr()));
  if (!answer.is_valid()) throw nb::python_error();
  return answer;
}

bool requires_grad(nb::handle tensor) {
  static PyObject* const getter = of_tensor("requires_grad");
  const nb::object answer =
      nb::steal(Py_TYPE(getter)->tp_descr_get(getter, tensor.ptr(), tensor.type().ptr()));
  if (!answer.is_valid()) throw nb::python_error();
  return answer.is(Py_True);
}

// What torch.autograd.graph.increment_version calls, itself 0.13 us of Python; nullptr where it
// takes no list.
PyObject* increment_versions() {
  const nb::object function =
      nb::getattr(nb::module_::import_("torch").attr("_C"), "_increment_version", nb::none());
  try {
    function(nb::list());
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    return nullptr;
  }
  return kept_for_good(function);
}

}  // namespace

void refuse_torch(nb::handle tensor, const char* op, const char* parameter) {
  if (requires_grad(tensor) &&
      nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")())) {
    refuse(op, parameter,
           "not require a gradient, which these functions do not record: pass it detached");
  }
  // torch negates the imaginary part of a conjugate when it reads it, not in memory.
  static PyObject* const is_neg = of_tensor("is_neg");
  if (ask(is_neg, tensor).is(Py_True))
    refuse(op, parameter, "be its memory, but is a lazy negation: pass x.resolve_neg()");
}

nb::object empty_torch(nb::handle like, const Tensor& view, aclDataType dtype, const Dims& shape) {
  static PyObject* const empty_like =
      kept_for_good(nb::module_::import_("torch").attr("empty_like"));
  if (view.dtype == dtype && view.shape == shape) return ask(empty_like, like);
  const nb::module_ torch = nb::module_::import_("torch");
  const nb::object torch_dtype = torch.attr(dtype == ACL_DOUBLE    ? "float64"
                                            : dtype == ACL_FLOAT16 ? "float16"
                                            : dtype == ACL_BF16    ? "bfloat16"
                                                                   : "float32");
  if (view.shape == shape) return nb::borrow(empty_like)(like, nb::arg("dtype") = torch_dtype);
  nb::list dims;
  for (int i = 0; i < shape.rank; ++i) dims.append(shape[i]);
  return torch.attr("empty")(nb::tuple(dims), nb::arg("dtype") = torch_dtype);
}

void TorchTensors::written(nb::handle tensor) {
  if (!written_.is_valid()) written_ = nb::list();
  nb::borrow<nb::list>(written_).append(tensor);
}

bool TorchTensors::moved() const {
  if (watched_.empty()) return false;  // torch may not be there to be asked
  static PyObject* const data_ptr = of_tensor("data_ptr");
  for (const Watched& watched : watched_) {
    const nb::object now = ask(data_ptr, watched.tensor);
    if (PyLong_AsVoidPtr(now.ptr()) != watched.data) return true;
  }
  return false;
}

// One call for all: 0.15 us for three tensors. Those of inference mode have no version, which torch
// knows.
void TorchTensors::tell_autograd() const {
  if (!written_.is_valid()) return;
  static PyObject* const increment_all = increment_versions();
  if (increment_all != nullptr) {
    ask(increment_all, written_);
  } else {
    const nb::object increment =
        nb::module_::import_("torch.autograd.graph").attr("increment_version");
    for (nb::handle tensor : nb::borrow<nb::list>(written_)) increment(tensor);
  }
}

}  // namespace openaclnn::python

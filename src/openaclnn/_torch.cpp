// SPDX-License-Identifier: Apache-2.0
#include "_torch.h"

#include "_arrays.h"

namespace openaclnn::python {
namespace {

// What `make`, a lambda of its own, gives, made once and kept for good. Without the guard of a
// static object: under it a thread that gave up the GIL would lock out those that wait for the
// guard and hold the GIL.
template <class Make>
PyObject* once(const Make& make) {
  static PyObject* made = nullptr;
  if (made == nullptr) {
    nb::object object = make();
    made = object.release().ptr();
  }
  return made;
}

// What is asked of every tensor of every call, from torch.Tensor itself: looking a name up in the
// tensor first costs 20 ns each.
nb::object of_tensor(const char* name) {
  return nb::module_::import_("torch").attr("Tensor").attr(name);
}

nb::object ask(PyObject* method, nb::handle tensor) {
  const nb::object answer = nb::steal(PyObject_CallOneArg(method, tensor.ptr()));
  if (!answer.is_valid()) throw nb::python_error();
  return answer;
}

bool requires_grad(nb::handle tensor) {
  PyObject* const getter = once([] { return of_tensor("requires_grad"); });
  const descrgetfunc get = Py_TYPE(getter)->tp_descr_get;
  const nb::object answer =
      nb::steal(get != nullptr ? get(getter, tensor.ptr(), tensor.type().ptr())
                               : PyObject_GetAttrString(tensor.ptr(), "requires_grad"));
  if (!answer.is_valid()) throw nb::python_error();
  return answer.is(Py_True);
}

// What torch.autograd.graph.increment_version calls, itself 0.13 us of Python; None where it takes
// one tensor only.
nb::object increment_versions() {
  const nb::object function =
      nb::getattr(nb::module_::import_("torch").attr("_C"), "_increment_version", nb::none());
  try {
    function(nb::tuple());
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_RuntimeError)) throw;
    return nb::none();
  }
  return function;
}

// torch negates the imaginary part of a conjugate when it reads it, not in memory. Such a view
// takes every other number of memory, and so do all views of it, whatever they skip or repeat. Only
// as_strided, resize_ and set_ give it strides that are not even (docs/differences.md). (To ask
// costs 90 ns a tensor, as torch gives up the GIL.)
bool may_be_negated(const Tensor& view) {
  for (int i = 0; i < view.shape.rank; ++i) {
    if (view.shape[i] > 1 && view.strides[i] % 2 != 0) return false;
  }
  return true;
}

}  // namespace

void refuse_recorded(nb::handle tensor, const char* op, const char* parameter) {
  if (requires_grad(tensor) &&
      nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")())) {
    refuse(op, parameter,
           "not require a gradient, which these functions do not record: pass it detached");
  }
}

void refuse_lazy(nb::handle tensor, const Tensor& view, const char* op, const char* parameter) {
  if (!may_be_negated(view)) return;
  PyObject* const is_neg = once([] { return of_tensor("is_neg"); });
  if (ask(is_neg, tensor).is(Py_True))
    refuse(op, parameter, "be its memory, but is a lazy negation: pass x.resolve_neg()");
}

nb::object empty_torch(nb::handle like, const Tensor& view, aclDataType dtype, const Dims& shape) {
  PyObject* const empty_like =
      once([] { return nb::object(nb::module_::import_("torch").attr("empty_like")); });
  if (view.dtype == dtype && view.shape == shape) return ask(empty_like, like);
  const nb::module_ torch = nb::module_::import_("torch");
  const nb::object torch_dtype = torch.attr(dtype == ACL_DOUBLE    ? "float64"
                                            : dtype == ACL_FLOAT16 ? "float16"
                                            : dtype == ACL_BF16    ? "bfloat16"
                                                                   : "float32");
  if (view.shape == shape) return nb::borrow(empty_like)(like, nb::arg("dtype") = torch_dtype);
  nb::list dims;
  for (int i = 0; i < shape.rank; ++i) dims.append(shape[i]);
  return torch.attr("empty")(nb::tuple(dims), nb::arg("dtype") = torch_dtype,
                             nb::arg("device") = "cpu");  // whatever the default is
}

bool TorchTensors::moved() const {
  if (watched_.empty()) return false;  // torch may not be there to be asked
  PyObject* const data_ptr = once([] { return of_tensor("data_ptr"); });
  for (const Watched& watched : watched_) {
    const nb::object now = ask(data_ptr, watched.tensor);
    if (PyLong_AsVoidPtr(now.ptr()) != watched.data) return true;
  }
  return false;
}

// One call for all: 0.15 us for three tensors. Those of inference mode have no version, which the
// call for all knows.
void TorchTensors::tell_autograd() {
  if (count_ == 0) return;
  PyObject* const increment_all = once([] { return increment_versions(); });
  if (increment_all != Py_None) {
    if (!told_.is_valid()) {
      told_ = nb::steal(PyTuple_New(count_));
      if (!told_.is_valid()) throw nb::python_error();
      for (int i = 0; i < count_; ++i)
        PyTuple_SET_ITEM(told_.ptr(), i, nb::handle(written_[i]).inc_ref().ptr());
    }
    ask(increment_all, told_);
  } else {
    const nb::object increment =
        nb::module_::import_("torch.autograd.graph").attr("increment_version");
    for (int i = 0; i < count_; ++i) {
      if (!nb::cast<bool>(written_[i].attr("is_inference")())) increment(written_[i]);
    }
  }
}

}  // namespace openaclnn::python

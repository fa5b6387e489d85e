// SPDX-License-Identifier: Apache-2.0
#include "torch.h"

#include <dlfcn.h>

#include <string>

#include "dlpack.h"

namespace openaclnn::python {
namespace {

// Calls `make`, a distinct lambda, once and caches its result for ever. Not a static local: a
// thread that releases the GIL under its guard would deadlock with those that wait for the guard.
template <class Make>
PyObject* once(const Make& make) {
  static PyObject* made = nullptr;
  if (made == nullptr) {
    nb::object object = make();
    made = object.release().ptr();
  }
  return made;
}

// Methods that are called for every tensor of every call come from torch.Tensor itself: looking a
// name up in the tensor first costs 20 ns each.
nb::object of_tensor(const char* name) {
  return nb::module_::import_("torch").attr("Tensor").attr(name);
}

nb::object ask(PyObject* method, nb::handle tensor) {
  PyObject* arguments[] = {nullptr, tensor.ptr()};  // the first is for the method to use
  const nb::object value = nb::steal(
      PyObject_Vectorcall(method, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!value.is_valid()) throw nb::python_error();
  return value;
}

// A property of torch.Tensor: a new reference, or nullptr and an exception.
PyObject* property(PyObject* getter, nb::handle tensor) {
  const auto get = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(getter), Py_tp_descr_get));
  return get(getter, tensor.ptr(), reinterpret_cast<PyObject*>(Py_TYPE(tensor.ptr())));
}

bool requires_grad(nb::handle tensor) {
  PyObject* const getter = once([] { return of_tensor("requires_grad"); });
  const nb::object value = nb::steal(property(getter, tensor));
  if (!value.is_valid()) throw nb::python_error();
  return value.is(Py_True);
}

// Only tensors of inference mode have no version. Asking is_inference costs 50 ns more, because
// torch gives up the GIL.
bool has_version(nb::handle tensor) {
  PyObject* const getter = once([] { return of_tensor("_version"); });
  const nb::object value = nb::steal(property(getter, tensor));
  if (value.is_valid()) return true;
  if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0) throw nb::python_error();
  PyErr_Clear();
  return false;
}

// The state of torch on this thread, from torch's library in 10 ns (80 through Python). If a
// function is missing, the answer is the one for which torch_refusals.py is asked.
class ThreadState {
 public:
  static const ThreadState& get() {
    static const ThreadState found;
    return found;
  }
  bool records() const { return grad_ == nullptr || grad_(); }
  bool protects() const { return inference_ == nullptr || !inference_(); }
  bool traces() const {
    return modes_ == nullptr || tracing_ == nullptr || modes_(false) || *tracing_() != nullptr;
  }

 private:
  ThreadState() {
    void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return;
    find(library, "_ZN3c108GradMode10is_enabledEv", &grad_);
    find(library, "_ZN3c1013InferenceMode10is_enabledEv", &inference_);
    find(library, "_ZN3c104impl20TorchDispatchModeTLS13any_modes_setEb", &modes_);
    find(library, "_ZN5torch3jit6tracer15getTracingStateEv", &tracing_);
  }
  template <class Function>
  static void find(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
  }

  bool (*grad_)() = nullptr;       // c10::GradMode::is_enabled
  bool (*inference_)() = nullptr;  // c10::InferenceMode::is_enabled
  // c10::impl::TorchDispatchModeTLS::any_modes_set(but_not_infra_modes): make_fx, FakeTensorMode
  bool (*modes_)(bool) = nullptr;
  void* const* (*tracing_)() = nullptr;  // torch::jit::tracer::getTracingState: a shared_ptr
};

// Whether tensors may carry forward-mode tangents: the level of the innermost dual_level().
bool differentiates_forward() {
  PyObject* const names = once([] {
    return nb::object(nb::module_::import_("torch.autograd.forward_ad").attr("__dict__"));
  });
  PyObject* const name = once([] { return nb::object(nb::str("_current_level")); });
  PyObject* const level = PyDict_GetItemWithError(names, name);
  if (level == nullptr || !PyLong_Check(level)) return true;
  return PyLong_AsLong(level) >= 0;
}

nb::object kinds(const char* function) {
  return nb::module_::import_("openaclnn.binding.torch_refusals").attr(function);
}

// The function behind torch.autograd.graph.increment_version, which is itself 0.13 us of Python;
// None if it takes only one tensor.
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
// as_strided, resize_, set_ and _neg_view give it strides that are not even (differences.md).
// (Asking costs 90 ns a tensor, because torch gives up the GIL.)
bool may_be_negated(const Tensor& view) {
  for (int i = 0; i < view.shape.rank; ++i) {
    if (view.shape[i] > 1 && view.strides[i] % 2 != 0) return false;
  }
  return true;
}

}  // namespace

void ask_torch_kind(nb::handle tensor, const ArgumentRef& argument) {
  const nb::object must = kinds("refusal")(tensor, argument.written);
  if (!must.is_none()) refuse(argument, nb::str(must).c_str());
}

void refuse_torch(nb::handle tensor, const ArgumentRef& argument) {
  ask_torch_kind(tensor, argument);
  refuse(argument, "be a dense array in CPU memory, but torch shows no memory of it");
}

void ask_torch_number(nb::handle tensor, const ArgumentRef& argument) {
  const nb::object must = kinds("number_refusal")(tensor);
  if (!must.is_none()) refuse(argument, nb::str(must).c_str());
}

const DLTensor* borrow_torch(nb::handle tensor, const ArgumentRef& argument, KeepAlive* keep) {
  ask_torch_kind(tensor, argument);
  const nb::object detached = tensor.attr("detach")();
  return borrow(detached, detached.attr("__dlpack__"), argument, keep);
}

bool refuse_lazy(const Array& tensor, const Tensor& view) {
  if (!may_be_negated(view)) return false;
  PyObject* const is_neg = once([] { return of_tensor("is_neg"); });
  if (ask(is_neg, tensor.object).is(Py_True)) ask_torch_kind(tensor.object, tensor.argument);
  return true;
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
                             nb::arg("device") = "cpu");  // regardless of the default device
}

void TorchTensors::ask() {
  const ThreadState& state = ThreadState::get();
  const bool traces = state.traces() || differentiates_forward();
  const bool records = state.records(), protects = state.protects();
  for (int i = 0; i < count_; ++i) {
    const auto& [tensor, argument] = acquired_[i];
    const bool is_protected = argument.written && protects && !has_version(tensor);
    if (traces || is_protected || (records && requires_grad(tensor)))
      ask_torch_kind(tensor, argument);
  }
}

void TorchTensors::prepare_to_ask_again() {
  for (int i = 0; i < count_; ++i)
    protected_ |= acquired_[i].argument.written && !has_version(acquired_[i].tensor);
}

void TorchTensors::ask_again() const {
  const ThreadState& state = ThreadState::get();
  if (!(state.traces() || differentiates_forward() || (protected_ && state.protects()))) return;
  for (int i = 0; i < count_; ++i) ask_torch_kind(acquired_[i].tensor, acquired_[i].argument);
}

// One call for all takes 0.15 us for three tensors. It ignores tensors of inference mode, which
// have no version.
void TorchTensors::bump_versions() {
  int written = 0;
  for (int i = 0; i < count_; ++i) written += acquired_[i].argument.written;
  if (written == 0) return;
  PyObject* const increment_all = once([] { return increment_versions(); });
  if (!written_.is_valid()) {
    written_ = nb::steal(PyTuple_New(written));
    if (!written_.is_valid()) throw nb::python_error();
    for (int i = 0, k = 0; i < count_; ++i) {
      if (acquired_[i].argument.written)
        PyTuple_SetItem(written_.ptr(), k++, nb::handle(acquired_[i].tensor).inc_ref().ptr());
    }
  }
  if (increment_all != Py_None) {
    openaclnn::python::ask(increment_all, written_);
    return;
  }
  const nb::object increment =
      nb::module_::import_("torch.autograd.graph").attr("increment_version");
  for (const nb::handle tensor : nb::borrow<nb::tuple>(written_)) {
    if (!nb::cast<bool>(tensor.attr("is_inference")())) increment(tensor);
  }
}

int TorchTensors::traverse(visitproc visit, void* data) const {
  const auto arg = data;
  Py_VISIT(written_.ptr());
  return 0;
}

void TorchTensors::clear() {
  count_ = 0;
  written_.reset();
}

}  // namespace openaclnn::python

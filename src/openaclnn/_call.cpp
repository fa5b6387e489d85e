// SPDX-License-Identifier: Apache-2.0
#include "_call.h"

#include <cstring>
#include <iterator>
#include <string>

#include "core/base/dtype.h"
#include "core/runtime/arithmetic.h"

namespace openaclnn::python {
namespace {

bool is_bool(nb::handle value) {
  if (PyBool_Check(value.ptr())) return true;
  const char* type = Py_TYPE(value.ptr())->tp_name;
  return std::strcmp(type, "numpy.bool") == 0 || std::strcmp(type, "numpy.bool_") == 0;
}

template <class T>
void set(Scalar* scalar, aclDataType dtype, T value) {
  scalar->dtype = dtype;
  std::memcpy(scalar->bytes, &value, sizeof value);
}

}  // namespace

Call::Call(const Operator& op, std::span<PyObject* const> values, Outputs outputs, Keep keep)
    : op_(op), keep_(keep) {
  const DefaultArithmetic arithmetic;  // a NumPy scalar becomes a double by arithmetic
  if (std::ssize(values) != op.parameter_count) throw nb::type_error("wrong number of arguments");
  for (int i = 0; i < op.parameter_count; ++i) read(i, values[i]);
  for (int i = 0; i < op.parameter_count; ++i) {
    const Parameter& parameter = op.parameters[i];
    if (parameter.role != Role::output && parameter.role != Role::inout) continue;
    const bool wanted = parameter.condition < 0 || argument_[parameter.condition].flag;
    if (argument_[i].handle != nullptr) {
      result_[outputs_] = nb::borrow(values[i]);
    } else if (outputs == Outputs::allocate_missing && wanted) {
      make_output(i);
    }
    ++outputs_;
  }
}

nb::object Call::take_result() {
  for (int k = 0; k < outputs_; ++k) {
    if (result_is_new_[k]) result_[k] = as_kind_of(first_input_, std::move(result_[k]));
    if (!result_[k].is_valid()) result_[k] = nb::none();
  }
  if (outputs_ == 1) return std::move(result_[0]);
  const nb::object made = nb::steal(PyTuple_New(outputs_));
  if (!made.is_valid()) throw nb::python_error();
  for (int k = 0; k < outputs_; ++k)
    PyTuple_SET_ITEM(made.ptr(), k, std::move(result_[k]).release().ptr());
  return made;
}

void Call::read(int i, nb::handle value) {
  const Parameter& parameter = op_.parameters[i];
  argument_[i].handle = nullptr;
  const bool pointer = parameter.kind == Kind::tensor || parameter.kind == Kind::scalar ||
                       parameter.kind == Kind::text;
  if (pointer && value.is_none()) return;  // NULL
  switch (parameter.kind) {
    case Kind::tensor: read_tensor(i, value); break;
    case Kind::scalar:
      argument_[i].scalar = read_scalar(parameter, value, scalar_[i].make());
      break;
    case Kind::double_: argument_[i].real = real(parameter, value); break;
    case Kind::int64: argument_[i].integer = integer(parameter, value); break;
    case Kind::bool_:
      if (!is_bool(value)) must_be(parameter, "True or False", value);
      argument_[i].flag = PyObject_IsTrue(value.ptr()) == 1;
      break;
    case Kind::text:
      argument_[i].text = text(parameter, value);
      kept_.append(value);
      break;
  }
}

void Call::read_tensor(int i, nb::handle value) {
  const Parameter& parameter = op_.parameters[i];
  const bool written = parameter.role != Role::input;
  const bool torch = is_torch(value);
  if (torch) refuse_recorded(value, op_.name, parameter.name);
  Tensor* tensor = tensor_[i].make();
  view_array(value, op_.name, parameter.name, written, tensor, &kept_);
  argument_[i].tensor = tensor;
  if (!written && !first_input_.is_valid()) first_input_ = value, first_view_ = tensor;
  if (keep_ == Keep::arrays) kept_.append(value);
  if (!torch) return;
  refuse_lazy(value, *tensor, op_.name, parameter.name);
  if (written) torch_.written(value);
  if (keep_ == Keep::arrays) {
    const auto offset = tensor->offset * static_cast<int64_t>(dtype_size(tensor->dtype));
    torch_.watch(value, static_cast<char*>(tensor->data) + offset);
  }
}

// Whatever is a number of Python becomes BOOL, INT64 or DOUBLE.
const Scalar* Call::read_scalar(const Parameter& parameter, nb::handle value,
                                Scalar* scalar) const {
  if (PyBool_Check(value.ptr())) {
    set(scalar, ACL_BOOL, value.ptr() == Py_True);
  } else if (PyLong_Check(value.ptr())) {
    set(scalar, ACL_INT64, integer(parameter, value));
  } else {
    set(scalar, ACL_DOUBLE, real(parameter, value));
  }
  return scalar;
}

double Call::real(const Parameter& parameter, nb::handle value) const {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) must_be(parameter, "a number", value);
  return number;
}

int64_t Call::integer(const Parameter& parameter, nb::handle value) const {
  const int64_t number = PyLong_AsLongLong(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr)
    must_be(parameter, "an integer of at most 64 bits", value);
  return number;
}

// UTF-8 that lives as long as the value.
const char* Call::text(const Parameter& parameter, nb::handle value) const {
  if (!PyUnicode_Check(value.ptr())) must_be(parameter, "a string or None", value);
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (utf8 == nullptr) must_be(parameter, "a string without lone surrogates", value);
  if (std::strlen(utf8) != static_cast<size_t>(size))
    must_be(parameter, "a string without null characters", value);
  return utf8;
}

void Call::must_be(const Parameter& parameter, const char* what, nb::handle value) const {
  PyErr_Clear();
  refuse_type(std::string(op_.name) + ": " + parameter.name + " must be " + what, value);
}

void Call::make_output(int i) {
  aclDataType dtype = ACL_DT_UNDEFINED;
  Dims shape;
  if (Status status = infer(op_, argument_, i, &dtype, &shape); !status.ok()) raise_status(status);
  const nb::object made = empty_array(first_input_, *first_view_, dtype, shape);
  Tensor* tensor = tensor_[i].make();
  view_array(made, op_.name, op_.parameters[i].name, true, tensor, &kept_);
  argument_[i].tensor = tensor;
  kept_.append(made);
  result_[outputs_] = made;
  result_is_new_[outputs_] = true;
}

}  // namespace openaclnn::python

// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include <cstring>
#include <iterator>
#include <string>

#include "array_types.h"
#include "numbers.h"
#include "core/support/arithmetic.h"
#include "core/support/parallel.h"

namespace openaclnn::python {
namespace {

template <class T>
void set(Scalar* scalar, aclDataType dtype, T value) {
  scalar->dtype = dtype;
  std::memcpy(scalar->bytes, &value, sizeof value);
}

// Every Python number becomes BOOL, INT64 or DOUBLE.
const Scalar* read_scalar(nb::handle value, const ArgumentRef& argument, Scalar* scalar) {
  if (PyBool_Check(value.ptr())) {
    set(scalar, ACL_BOOL, value.ptr() == Py_True);
  } else if (PyLong_Check(value.ptr())) {
    set(scalar, ACL_INT64, to_integer(value, argument));
  } else {
    set(scalar, ACL_DOUBLE, to_real(value, argument));
  }
  return scalar;
}

bool is_output(const Parameter& parameter) {
  return parameter.role == Role::output || parameter.role == Role::inout;
}

}  // namespace

Call::Call(const Operator& op, std::span<PyObject* const> values, Outputs outputs, Keep keep)
    : op_(op), keep_(keep) {
  const DefaultArithmetic arithmetic;  // a NumPy scalar becomes a double by arithmetic
  if (std::ssize(values) != op.parameter_count) throw nb::type_error("wrong number of arguments");
  for (int i = 0; i < op.parameter_count; ++i) {
    if (op.parameters[i].kind == Kind::tensor) {
      acquire(i, values[i], outputs);
    } else {
      convert(i, values[i]);
    }
  }
  if (!torch_.none()) {
    this_thread_calls_torch();
    torch_.ask();
  }
  view();
  bool stale = !torch_.none() && ask_lazy();
  int made[kMaxOutputs], made_count = 0;
  for (int i = 0; i < op.parameter_count; ++i) {
    const Parameter& parameter = op.parameters[i];
    if (!is_output(parameter)) continue;
    if (has_tensor(i)) {
      result_[outputs_] = nb::borrow(values[i]);
    } else if (outputs == Outputs::allocate_missing &&
               (parameter.condition < 0 || argument_[parameter.condition].flag)) {
      make_output(i);
      made[made_count++] = i;
      stale |= array_[first_input_].kind != ArrayKind::numpy;
    }
    ++outputs_;
  }
  for (int k = 0; k < made_count; ++k) {
    const int i = made[k];
    argument_[i].tensor = tensor_[i].make();
    if (!stale) view_array(array_[i], tensor_[i].get());
  }
  if (stale) view();
}

nb::object Call::take_result() {
  for (int k = 0; k < outputs_; ++k) {
    if (result_is_new_[k]) result_[k] = as_kind_of(array_[first_input_], std::move(result_[k]));
    if (!result_[k].is_valid()) result_[k] = nb::none();
  }
  if (outputs_ == 1) return std::move(result_[0]);
  const nb::object made = nb::steal(PyTuple_New(outputs_));
  if (!made.is_valid()) throw nb::python_error();
  for (int k = 0; k < outputs_; ++k)
    PyTuple_SetItem(made.ptr(), k, std::move(result_[k]).release().ptr());
  return made;
}

WatchedArrays Call::take_watched() {
  WatchedArrays watched;
  for (int i = 0; i < op_.parameter_count; ++i) {
    if (has_tensor(i)) watched.watch(array_[i], op_.parameters[i].name);
  }
  watched.keep(std::move(keep_alive_));
  return watched;
}

ArgumentRef Call::argument(int i) const {
  const Parameter& parameter = op_.parameters[i];
  return {op_.name, parameter.name, is_output(parameter)};
}

bool Call::has_tensor(int i) const {
  return op_.parameters[i].kind == Kind::tensor && argument_[i].tensor != nullptr;
}

// An output that a flag switches off may always be missing; flags come before outputs.
bool Call::may_be_none(int i, Outputs outputs) const {
  const Parameter& parameter = op_.parameters[i];
  if (outputs == Outputs::allocate_missing && parameter.role == Role::output) return true;
  return !parameter.required || (parameter.condition >= 0 && !argument_[parameter.condition].flag);
}

void Call::acquire(int i, nb::handle value, Outputs outputs) {
  argument_[i].tensor = nullptr;
  if (value.is_none() && may_be_none(i, outputs)) return;
  array_[i] = acquire_array(value, argument(i), &keep_alive_);
  argument_[i].tensor = tensor_[i].make();
  if (keep_ == Keep::arrays) keep_alive_.append(nb::borrow(value));
  if (array_[i].kind == ArrayKind::torch) torch_.add(array_[i]);
  if (first_input_ < 0 && !is_output(op_.parameters[i])) first_input_ = i;
}

void Call::view() {
  for (int i = 0; i < op_.parameter_count; ++i) {
    if (has_tensor(i)) view_array(array_[i], tensor_[i].get());
  }
}

// Returns whether torch had to be asked about a tensor.
bool Call::ask_lazy() {
  bool asked = false;
  for (int i = 0; i < op_.parameter_count; ++i) {
    if (has_tensor(i) && array_[i].kind == ArrayKind::torch)
      asked |= refuse_lazy(array_[i], *tensor_[i].get());
  }
  return asked;
}

void Call::convert(int i, nb::handle value) {
  const Parameter& parameter = op_.parameters[i];
  argument_[i].handle = nullptr;
  const bool builtin = PyFloat_CheckExact(value.ptr()) || PyLong_CheckExact(value.ptr()) ||
                       PyBool_Check(value.ptr()) || value.is_none() ||
                       PyUnicode_CheckExact(value.ptr());
  if (!builtin && type_of(value).is_torch) ask_torch_number(value, argument(i));
  switch (parameter.kind) {
    case Kind::tensor: break;
    case Kind::scalar:
      if (!value.is_none() || parameter.required)
        argument_[i].scalar = read_scalar(value, argument(i), scalar_[i].make());
      break;
    case Kind::real: argument_[i].real = to_real(value, argument(i)); break;
    case Kind::integer: argument_[i].integer = to_integer(value, argument(i)); break;
    case Kind::flag: argument_[i].flag = to_flag(value, argument(i)); break;
    case Kind::text:
      if (value.is_none()) break;
      argument_[i].text = to_text(value, argument(i));
      keep_alive_.append(nb::borrow(value));
      break;
  }
}

// Makes an array for an output that was not given; it is viewed later. torch may run other people's
// code here.
void Call::make_output(int i) {
  aclDataType dtype = ACL_DT_UNDEFINED;
  Dims shape;
  if (Status status = infer(op_, argument_, i, &dtype, &shape); !status.ok()) raise_status(status);
  nb::object made = empty_array(array_[first_input_], *tensor_[first_input_].get(), dtype, shape);
  array_[i] = acquire_array(made, argument(i), &keep_alive_);
  result_[outputs_] = std::move(made);
  result_is_new_[outputs_] = true;
}

}  // namespace openaclnn::python

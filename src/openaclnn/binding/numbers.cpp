// SPDX-License-Identifier: Apache-2.0
#include "numbers.h"

#include <cstring>
#include <string>

namespace openaclnn::python {
namespace {

[[noreturn]] void must_be(const ArgumentRef& argument, const char* what, nb::handle value) {
  refuse_type(std::string(argument.op) + ": " + argument.parameter + " must be " + what, value);
}

// A TypeError means that the value is not a number; any other exception goes to the caller
// unchanged.
[[noreturn]] void conversion_failed(const ArgumentRef& argument, const char* what,
                                    nb::handle value) {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
  must_be(argument, what, value);
}

}  // namespace

double to_real(nb::handle value, const ArgumentRef& argument) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    // of an integer that is too large; what __float__ raises is its own
    if (PyLong_Check(value.ptr())) must_be(argument, "a number", value);
    conversion_failed(argument, "a number", value);
  }
  return number;
}

int64_t to_integer(nb::handle value, const ArgumentRef& argument) {
  constexpr const char* kWhat = "an integer of at most 64 bits";
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) conversion_failed(argument, kWhat, value);
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) must_be(argument, kWhat, value);
  return number;
}

bool to_flag(nb::handle value, const ArgumentRef& argument) {
  if (!PyBool_Check(value.ptr()) && !is_numpy_bool(value))
    must_be(argument, "True or False", value);
  return PyObject_IsTrue(value.ptr()) == 1;
}

const char* to_text(nb::handle value, const ArgumentRef& argument) {
  if (!PyUnicode_Check(value.ptr())) must_be(argument, "a string or None", value);
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (utf8 == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_UnicodeError) == 0) throw nb::python_error();
    must_be(argument, "a string without lone surrogates", value);
  }
  if (std::strlen(utf8) != static_cast<size_t>(size))
    must_be(argument, "a string without null characters", value);
  return utf8;
}

}  // namespace openaclnn::python

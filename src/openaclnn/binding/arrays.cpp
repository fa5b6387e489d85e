// SPDX-License-Identifier: Apache-2.0
// NumPy arrays as tensors, and the code that all kinds of arrays share.
#include "arrays.h"

#include <nanobind/stl/string.h>

#include <string>

#include "array_types.h"
#include "dlpack.h"
#define OPENACLNN_FILLS_NUMPY_TABLE
#include "numpy.h"
#include "torch.h"
#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"

namespace openaclnn::python {
namespace {

// A lookup by name takes longer than an element-wise kernel on few elements. So the first type that
// has it is cached, and kept alive so that its address stays unique.
bool is_bfloat16(const PyArray_Descr* descr) {
  static PyObject* known = nullptr;
  auto* const type = reinterpret_cast<PyObject*>(descr->typeobj);
  if (type == known) return true;
  if (nb::cast<std::string>(nb::handle(type).attr("__name__")) != "bfloat16") return false;
  if (known == nullptr) known = Py_NewRef(type);
  return true;
}

aclDataType dtype_of(const PyArray_Descr* descr) {
  switch (descr->type_num) {
    case NPY_FLOAT: return ACL_FLOAT;
    case NPY_HALF: return ACL_FLOAT16;
    case NPY_DOUBLE: return ACL_DOUBLE;
    case NPY_BYTE: return ACL_INT8;
    case NPY_SHORT: return ACL_INT16;
    case NPY_INT: return ACL_INT32;
    case NPY_LONG:
    case NPY_LONGLONG: return ACL_INT64;
    case NPY_UBYTE: return ACL_UINT8;
    case NPY_USHORT: return ACL_UINT16;
    case NPY_UINT: return ACL_UINT32;
    case NPY_ULONG:
    case NPY_ULONGLONG: return ACL_UINT64;
    case NPY_BOOL: return ACL_BOOL;
    case NPY_CFLOAT: return ACL_COMPLEX64;
    case NPY_CDOUBLE: return ACL_COMPLEX128;
    default: return is_bfloat16(descr) ? ACL_BF16 : ACL_DT_UNDEFINED;
  }
}

void view_numpy(PyArrayObject* array, const ArgumentRef& argument, Tensor* tensor) {
  PyArray_Descr* descr = PyArray_DESCR(array);
  tensor->dtype = dtype_of(descr);
  const bool known = tensor->dtype != ACL_DT_UNDEFINED;
  if (!known || !PyArray_ISNOTSWAPPED(array)) {
    refuse(argument, std::string("have a dtype ") +
                         (known ? "in native byte order" : "of the aclnn API") + ", but got " +
                         nb::str(nb::handle(reinterpret_cast<PyObject*>(descr))).c_str());
  }
  if (argument.written && !PyArray_ISWRITEABLE(array))
    refuse(argument, "be writable, but got a read-only array");
  const auto size = static_cast<npy_intp>(dtype_size(tensor->dtype));
  tensor->shape.rank = tensor->strides.rank = PyArray_NDIM(array);
  if (tensor->shape.rank > kMaxDims)
    refuse(argument, "have at most 8 dimensions, but got more than 25");
  for (int i = 0; i < tensor->shape.rank; ++i) {
    const npy_intp stride = PyArray_STRIDE(array, i);
    tensor->shape[i] = PyArray_DIM(array, i);
    tensor->strides[i] = stride / size;
    if (stride % size != 0 && tensor->shape[i] > 1) {
      refuse(argument, "have strides of whole elements, but steps by " + std::to_string(stride) +
                           " bytes over items of " + std::to_string(size));
    }
  }
  set_view(argument, tensor, PyArray_BYTES(array));
}

// Views the memory that an exchange shows without Python. A torch tensor without memory is refused
// for its kind.
void view_exchange(const Array& array, Tensor* tensor) {
  DLTensor shown;
  if (array.exchange(array.object, &shown) != 0) {
    nb::python_error error;
    if (array.kind != ArrayKind::torch) throw error;
    refuse_torch(array.object, array.argument);
  }
  if (array.kind == ArrayKind::torch && !is_usual(shown))
    ask_torch_kind(array.object, array.argument);
  view_dlpack(shown, array.argument, tensor);
}

[[noreturn]] void refuse_no_array(nb::handle object, const ArgumentRef& argument) {
  std::string found = PyArray_CheckScalar(object.ptr()) ? "a NumPy scalar of type " : "";
  found += object.is_none() ? "None" : nb::type_name(object.type()).c_str();
  throw nb::type_error((std::string(argument.op) + ": " + argument.parameter +
                        " must be a NumPy array, a torch tensor or a DLPack producer, but got " +
                        found)
                           .c_str());
}

// A new reference to the dtype; bfloat16 comes from ml_dtypes.
PyArray_Descr* descr_of(aclDataType dtype) {
  if (dtype != ACL_BF16) {
    return PyArray_DescrFromType(dtype == ACL_FLOAT16  ? NPY_HALF
                                 : dtype == ACL_DOUBLE ? NPY_DOUBLE
                                                       : NPY_FLOAT);
  }
  const nb::object type = nb::module_::import_("ml_dtypes").attr("bfloat16");
  return PyArray_DescrFromTypeObject(type.ptr());
}

}  // namespace

void set_view(const ArgumentRef& argument, Tensor* tensor, char* origin) {
  for (int i = 0; i < tensor->shape.rank; ++i) {
    if (tensor->shape[i] == 1) tensor->strides[i] = 1;  // unused, may be anything
  }
  tensor->format = ACL_FORMAT_ND;
  tensor->offset = 0;
  int64_t low = 0, high = 0;
  if (!element_range(*tensor, &low, &high)) {
    refuse(argument, "lie within 2^58 elements, but has shape " + to_text(tensor->shape) +
                         " with strides " + to_text(tensor->strides));
  }
  tensor->offset = -low;
  tensor->storage.rank = 1;
  tensor->storage[0] = high - low;
  // Integer arithmetic: a producer may name memory outside the address space, which check_view
  // refuses.
  tensor->data = reinterpret_cast<void*>(
      reinterpret_cast<uintptr_t>(origin) +
      static_cast<uintptr_t>(low * static_cast<int64_t>(dtype_size(tensor->dtype))));
}

void refuse(const ArgumentRef& argument, const std::string& what) {
  raise_status(fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, argument.op, "%s must %s",
                    argument.parameter, what.c_str()));
}

std::string shown(nb::handle value) {
  constexpr Py_ssize_t kLongest = 60;
  nb::object text = nb::steal(PyObject_Repr(value.ptr()));
  if (!text.is_valid()) {
    const nb::python_error error;
    if (!error.matches(PyExc_Exception)) throw error;  // KeyboardInterrupt
    return std::string("a ") + nb::type_name(value.type()).c_str() + " whose repr fails";
  }
  if (PyUnicode_GetLength(text.ptr()) > kLongest)
    text = nb::steal(PyUnicode_Substring(text.ptr(), 0, kLongest - 3)) + nb::str("...");
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr()))};
}

void refuse_type(const std::string& sentence, nb::handle value) {
  nb::object cause;
  if (PyErr_Occurred() != nullptr) {
    const nb::python_error error;
    cause = nb::borrow(error.value());
  }
  const std::string message = sentence + ", but got " + shown(value);
  const nb::object raised = nb::handle(PyExc_TypeError)(nb::str(message.data(), message.size()));
  if (cause.is_valid()) PyException_SetCause(raised.ptr(), cause.release().ptr());
  PyErr_SetObject(PyExc_TypeError, raised.ptr());
  throw nb::python_error();
}

nb::object attribute(nb::handle object, const char* name) {
  PyObject* const found = PyObject_GetAttrString(object.ptr(), name);
  if (found == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw nb::python_error();
    PyErr_Clear();
  }
  return nb::steal(found);
}

bool is_numpy_bool(nb::handle value) { return PyArray_IsScalar(value.ptr(), Bool); }
namespace {

// Returns the innermost Python frame outside this package.
Caller python_caller() {
  Caller caller = {};
  try {
    nb::object frame = nb::module_::import_("sys").attr("_getframe")();
    const auto module = [&] {
      const nb::object name = frame.attr("f_globals").attr("get")("__name__", "");
      return nb::str(name) + nb::str(".");
    };
    while (std::strncmp(nb::str(module()).c_str(), "openaclnn.", 10) == 0) {
      const nb::object outer = frame.attr("f_back");
      if (outer.is_none()) break;
      frame = outer;
    }
    const nb::object code = frame.attr("f_code");
    const nb::str function(code.attr("co_name")), file(code.attr("co_filename"));
    std::strncpy(caller.function, function.c_str(), sizeof caller.function - 1);
    std::strncpy(caller.file, file.c_str(), sizeof caller.file - 1);
    caller.line = nb::cast<int>(frame.attr("f_lineno"));
  } catch (nb::python_error&) {  // a thread without frames
  }
  return caller;
}

}  // namespace

void raise_status(Status status) {
  notify_status_at(python_caller);
  const nb::object error = nb::module_::import_("openaclnn.errors").attr("AclnnError");
  const std::string bytes =
      take_sentence();  // text of the caller may be truncated inside a character
  const nb::object sentence = nb::steal(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
  PyErr_SetObject(error.ptr(), nb::make_tuple(status.code(), sentence).ptr());
  throw nb::python_error();
}

Array acquire_array(nb::handle object, const ArgumentRef& argument, KeepAlive* keep) {
  Array array{object.ptr(), argument, ArrayKind::numpy, nullptr, nullptr};
  if (PyArray_CheckExact(object.ptr())) return array;
  if (PyArray_Check(object.ptr())) {
    if (attribute(object, "mask").is_valid())
      refuse(argument, "be a plain array, but is a masked one: pass x.filled(value)");
    return array;
  }
  const ArrayType type = type_of(object);
  array.exchange = type.exchange;
  if (type.is_torch) {
    array.kind = ArrayKind::torch;
    if (!type.is_plain) refuse_torch(object, argument);
    if (array.exchange == nullptr) array.lent = borrow_torch(object, argument, keep);
    return array;
  }
  array.kind = ArrayKind::producer;
  const nb::object dlpack = attribute(object, "__dlpack__");
  if (!dlpack.is_valid()) refuse_no_array(object, argument);
  if (argument.written) {
    refuse(argument, std::string("be a NumPy array or a torch tensor to be written, but got ") +
                         nb::type_name(object.type()).c_str());
  }
  if (array.exchange == nullptr) array.lent = borrow(object, dlpack, argument, keep);
  return array;
}

void view_array(const Array& array, Tensor* tensor) {
  if (array.kind == ArrayKind::numpy) {
    view_numpy(reinterpret_cast<PyArrayObject*>(array.object), array.argument, tensor);
  } else if (array.exchange != nullptr) {
    view_exchange(array, tensor);
  } else {
    view_dlpack(*array.lent, array.argument, tensor);
  }
}

nb::object empty_array(const Array& like, const Tensor& view, aclDataType dtype,
                       const Dims& shape) {
  const bool numpy = like.kind == ArrayKind::numpy;
  if (like.kind == ArrayKind::torch) return empty_torch(like.object, view, dtype, shape);
  auto* array = reinterpret_cast<PyArrayObject*>(like.object);
  PyArray_Descr* descr = nullptr;
  if (numpy && view.dtype == dtype) {
    descr = PyArray_DESCR(array);
    Py_INCREF(reinterpret_cast<PyObject*>(descr));
  } else {
    descr = descr_of(dtype);
  }
  PyObject* made = nullptr;
  if (numpy && view.shape == shape) {
    made = PyArray_NewLikeArray(array, NPY_KEEPORDER, descr, 0);
  } else {
    npy_intp dims[kMaxDims];
    for (int i = 0; i < shape.rank; ++i) dims[i] = shape[i];
    made = PyArray_Empty(shape.rank, dims, descr, 0);
  }
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

nb::object as_kind_of(const Array& like, nb::object array) {
  if (like.kind != ArrayKind::producer) return array;
  return nb::module_::import_("openaclnn.function_outputs")
      .attr("as_kind_of")(nb::handle(like.object), array);
}

void init_arrays() {
  if (_import_array() < 0) throw nb::python_error();
}

}  // namespace openaclnn::python

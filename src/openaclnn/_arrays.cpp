// SPDX-License-Identifier: Apache-2.0
// NumPy arrays as tensors, and what is common to all kinds of arrays.
#include "_arrays.h"

#include <nanobind/stl/string.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <cstring>
#include <string>

#include "_torch.h"
#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"

namespace openaclnn::python {
namespace {

bool is_bfloat16(const PyArray_Descr* descr) {
  return std::strcmp(descr->typeobj->tp_name, "ml_dtypes.bfloat16") == 0 ||
         std::strcmp(descr->typeobj->tp_name, "bfloat16") == 0;
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

void view_numpy(nb::handle object, const char* op, const char* parameter, bool written,
                Tensor* tensor) {
  auto* array = reinterpret_cast<PyArrayObject*>(object.ptr());
  if (!PyArray_CheckExact(object.ptr()) && nb::hasattr(object, "mask"))
    refuse(op, parameter, "be a plain array, but is a masked one: pass x.filled(value)");
  PyArray_Descr* descr = PyArray_DESCR(array);
  tensor->dtype = dtype_of(descr);
  const bool known = tensor->dtype != ACL_DT_UNDEFINED;
  if (!known || !PyArray_ISNOTSWAPPED(array)) {
    refuse(op, parameter,
           std::string("have a dtype ") + (known ? "in native byte order" : "of the aclnn API") +
               ", but got " + nb::str(nb::handle(reinterpret_cast<PyObject*>(descr))).c_str());
  }
  if (written && !PyArray_ISWRITEABLE(array))
    refuse(op, parameter, "be writable, but got a read-only array");
  const auto size = static_cast<npy_intp>(dtype_size(tensor->dtype));
  tensor->shape.rank = tensor->strides.rank = PyArray_NDIM(array);
  if (tensor->shape.rank > kMaxDims)
    refuse(op, parameter, "have at most 8 dimensions, but got more than 25");
  for (int i = 0; i < tensor->shape.rank; ++i) {
    const npy_intp stride = PyArray_STRIDE(array, i);
    tensor->shape[i] = PyArray_DIM(array, i);
    tensor->strides[i] = stride / size;
    if (stride % size != 0 && tensor->shape[i] > 1) {
      refuse(op, parameter,
             "have strides of whole elements, but steps by " + std::to_string(stride) +
                 " bytes over items of " + std::to_string(size));
    }
  }
  set_view(tensor, PyArray_BYTES(array));
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

void set_view(Tensor* tensor, char* origin) {
  for (int i = 0; i < tensor->shape.rank; ++i) {
    if (tensor->shape[i] == 1) tensor->strides[i] = 1;  // never used, and anything may stand there
  }
  tensor->format = ACL_FORMAT_ND;
  tensor->offset = 0;
  int64_t low = 0, high = 0;
  (void)element_range(*tensor, &low, &high);  // a live array is in range
  tensor->offset = -low;
  tensor->storage.rank = 1;
  tensor->storage[0] = high - low;
  tensor->data = origin + low * static_cast<int64_t>(dtype_size(tensor->dtype));
}

void refuse(const char* op, const char* parameter, const std::string& what) {
  raise_status(fail(ACLNN_ERR_PARAM_INVALID, "%s: %s must %s", op, parameter, what.c_str()));
}

void refuse_type(const std::string& sentence, nb::handle value) {
  constexpr Py_ssize_t kLongest = 60;
  nb::object shown = nb::repr(value);
  if (PyUnicode_GET_LENGTH(shown.ptr()) > kLongest)
    shown = nb::steal(PyUnicode_Substring(shown.ptr(), 0, kLongest - 3)) + nb::str("...");
  PyErr_SetObject(PyExc_TypeError, (nb::str((sentence + ", but got ").c_str()) + shown).ptr());
  throw nb::python_error();
}

namespace {

// The innermost frame of Python outside this package.
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
  } catch (nb::python_error&) {  // a thread without frames: the place stays empty
  }
  return caller;
}

}  // namespace

void raise_status(Status status) {
  tell_answer_at(python_caller);
  const nb::object error = nb::module_::import_("openaclnn.errors").attr("AclnnError");
  const std::string bytes = take_sentence();  // a text of the caller may be cut inside a character
  const nb::object sentence = nb::steal(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
  PyErr_SetObject(error.ptr(), nb::make_tuple(status.code(), sentence).ptr());
  throw nb::python_error();
}

void view_array(nb::handle array, const char* op, const char* parameter, bool written,
                Tensor* tensor, Kept* keep) {
  if (PyArray_Check(array.ptr())) {
    view_numpy(array, op, parameter, written, tensor);
  } else if (is_torch(array) || nb::hasattr(array, "__dlpack__")) {
    view_dlpack(array, op, parameter, written, tensor, keep);
  } else {
    const bool scalar = PyArray_CheckScalar(array.ptr());
    throw nb::type_error((std::string(op) + ": " + parameter +
                          " must be a NumPy array, a torch tensor or a DLPack producer, but got " +
                          (scalar ? "a NumPy scalar of type " : "") +
                          nb::type_name(array.type()).c_str())
                             .c_str());
  }
}

nb::object empty_array(nb::handle like, const Tensor& view, aclDataType dtype, const Dims& shape) {
  const bool numpy = PyArray_Check(like.ptr());
  if (!numpy && is_torch(like)) return empty_torch(like, view, dtype, shape);
  auto* array = reinterpret_cast<PyArrayObject*>(like.ptr());
  PyArray_Descr* descr = nullptr;
  if (numpy && view.dtype == dtype) {
    descr = PyArray_DESCR(array);
    Py_INCREF(descr);
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

nb::object as_kind_of(nb::handle like, nb::object array) {
  if (PyArray_Check(like.ptr()) || is_torch(like)) return array;
  return nb::module_::import_("openaclnn.interop").attr("as_kind_of")(like, array);
}

void init_arrays() {
  if (_import_array() < 0) throw nb::python_error();
}

}  // namespace openaclnn::python

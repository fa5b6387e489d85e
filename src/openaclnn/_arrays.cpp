// SPDX-License-Identifier: Apache-2.0
#include "_arrays.h"

#include <nanobind/stl/string.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <cstring>
#include <deque>
#include <string>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"

namespace openaclnn::python {
namespace {

// DLPack, version 1: a plain C struct behind a capsule, and the table of functions by which a
// library fills one without going through Python (0.03 µs a tensor against 0.4).
struct DLTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DLPackExchange {
  uint32_t major, minor;
  DLPackExchange* previous;
  void *allocate, *to_managed, *from_managed;
  int (*view)(void* object, DLTensor* tensor);
};

// What is kept of the array types met so far.
struct Kind {
  PyTypeObject* type;
  int (*view)(void* object, DLTensor* tensor);  // nullptr: through __dlpack__
  bool is_torch;
};

[[noreturn]] void refuse(const char* op, const char* parameter, const std::string& what) {
  raise_status(fail(ACLNN_ERR_PARAM_INVALID, "%s: %s must %s", op, parameter, what.c_str()));
}

// The view of an array whose element (0, …, 0) is at `origin`: storage is exactly what the view
// spans.
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
  PyArray_Descr* descr = PyArray_DESCR(array);
  tensor->dtype = dtype_of(descr);
  if (tensor->dtype == ACL_DT_UNDEFINED || !PyArray_ISNOTSWAPPED(array)) {
    refuse(op, parameter,
           "have a dtype of the aclnn API in native byte order, but got " +
               std::string(nb::str(nb::handle(reinterpret_cast<PyObject*>(descr))).c_str()));
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

bool is_torch(PyTypeObject* type) {
  PyObject* torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (torch == nullptr) return false;
  const nb::object tensor = nb::getattr(torch, "Tensor", nb::none());
  return PyType_Check(tensor.ptr()) &&
         PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(tensor.ptr()));
}

// A heap type stays alive once it was seen: its address must not come to mean another.
const Kind& kind_of(nb::handle array) {
  static auto& kinds = *new std::deque<Kind>;
  PyTypeObject* type = Py_TYPE(array.ptr());
  for (const Kind& kind : kinds) {
    if (kind.type == type) return kind;
  }
  Kind kind{type, nullptr, is_torch(type)};
  const nb::object capsule = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(type)),
                                         "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) {
    const auto* table =
        static_cast<DLPackExchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    while (table != nullptr && table->major != 1) table = table->previous;
    if (table != nullptr) kind.view = table->view;
  }
  Py_INCREF(type);
  kinds.push_back(kind);
  return kinds.back();
}

aclDataType dtype_of(const DLTensor& source) {
  if (source.dtype.lanes != 1) return ACL_DT_UNDEFINED;
  constexpr uint8_t kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4;
  if (source.dtype.code == kBfloat && source.dtype.bits == 16) return ACL_BF16;
  if (source.dtype.code == kFloat) {
    return source.dtype.bits == 32   ? ACL_FLOAT
           : source.dtype.bits == 16 ? ACL_FLOAT16
           : source.dtype.bits == 64 ? ACL_DOUBLE
                                     : ACL_DT_UNDEFINED;
  }
  if (source.dtype.code == kInt)
    return source.dtype.bits == 32 ? ACL_INT32 : source.dtype.bits == 64 ? ACL_INT64 : ACL_INT8;
  return source.dtype.code == kUnsigned && source.dtype.bits == 8 ? ACL_UINT8 : ACL_DT_UNDEFINED;
}

void refuse_gradient(nb::handle array, const char* op, const char* parameter) {
  static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  const nb::object answer = nb::steal(PyObject_GetAttr(array.ptr(), requires_grad));
  if (!answer.is(Py_True) ||
      !nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")()))
    return;
  refuse(op, parameter,
         "not require a gradient, which these functions do not record: pass x.detach()");
}

// torch negates the imaginary part of a conjugate when it reads it, not in memory.
void refuse_negation(nb::handle array, const char* op, const char* parameter) {
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  if (!nb::steal(PyObject_CallMethodNoArgs(array.ptr(), is_neg)).is(Py_True)) return;
  refuse(op, parameter, "be its memory, but is a lazy negation: pass x.resolve_neg()");
}

void view_dlpack(nb::handle array, const char* op, const char* parameter, bool written,
                 Tensor* tensor, nb::list* keep) {
  const Kind& kind = kind_of(array);
  if (kind.is_torch) refuse_gradient(array, op, parameter), refuse_negation(array, op, parameter);
  if (written && !kind.is_torch) {
    refuse(op, parameter,
           std::string("be a NumPy array or a torch tensor to be written, but got ") +
               kind.type->tp_name);
  }
  DLTensor direct;
  DLTensor* source = &direct;
  if (kind.view != nullptr) {
    if (kind.view(array.ptr(), source) != 0) {
      const std::string why = nb::str(nb::python_error().value()).c_str();
      refuse(op, parameter,
             "be a dense array in CPU memory, but is not: " + why.substr(0, why.find('\n')));
    }
  } else {
    const nb::object capsule = array.attr("__dlpack__")();
    source = static_cast<DLTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    if (source == nullptr) throw nb::python_error();
    keep->append(capsule);  // a capsule that nobody took over frees the tensor when it dies
  }
  constexpr int32_t kCpu = 1;
  if (source->device.type != kCpu) {
    refuse(op, parameter,
           "be on the CPU, but its DLPack device type is " + std::to_string(source->device.type));
  }
  tensor->dtype = dtype_of(*source);
  if (tensor->dtype == ACL_DT_UNDEFINED)
    refuse(op, parameter, "have a dtype of the aclnn API, but its DLPack dtype is none");
  if (source->ndim > kMaxDims)
    refuse(op, parameter, "have at most 8 dimensions, but got more than 25");
  tensor->shape.rank = source->ndim;
  for (int i = 0; i < source->ndim; ++i) tensor->shape[i] = source->shape[i];
  tensor->strides = contiguous_strides(tensor->shape);
  for (int i = 0; i < source->ndim && source->strides != nullptr; ++i)
    tensor->strides[i] = source->strides[i];
  set_view(tensor, static_cast<char*>(source->data) + source->byte_offset);
}

int numpy_type(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT16: return NPY_HALF;
    case ACL_DOUBLE: return NPY_DOUBLE;
    case ACL_BF16:
      return PyArray_DescrFromTypeObject(
                 nb::object(nb::module_::import_("ml_dtypes").attr("bfloat16")).ptr())
          ->type_num;
    default: return NPY_FLOAT;
  }
}

}  // namespace

void raise_status(Status status) {
  const nb::object error = nb::module_::import_("openaclnn.errors").attr("AclnnError");
  const std::string sentence = take_sentence();
  PyErr_SetObject(error.ptr(), nb::make_tuple(status.code(), sentence).ptr());
  throw nb::python_error();
}

void view_array(nb::handle array, const char* op, const char* parameter, bool written,
                Tensor* tensor, nb::list* keep) {
  if (PyArray_Check(array.ptr())) {
    view_numpy(array, op, parameter, written, tensor);
  } else if (kind_of(array).view != nullptr || nb::hasattr(array, "__dlpack__")) {
    view_dlpack(array, op, parameter, written, tensor, keep);
  } else {
    throw nb::type_error((std::string(op) + ": " + parameter +
                          " must be a NumPy array, a torch tensor or a DLPack producer, but got " +
                          nb::type_name(array.type()).c_str())
                             .c_str());
  }
}

nb::object empty_torch(nb::handle like, aclDataType dtype, const Dims& shape) {
  const nb::module_ torch = nb::module_::import_("torch");
  const nb::object torch_dtype = torch.attr(dtype == ACL_DOUBLE    ? "float64"
                                            : dtype == ACL_FLOAT16 ? "float16"
                                            : dtype == ACL_BF16    ? "bfloat16"
                                                                   : "float32");
  nb::list dims;
  for (int i = 0; i < shape.rank; ++i) dims.append(shape[i]);
  const nb::tuple wanted(dims);
  if (like.attr("shape").equal(wanted))
    return torch.attr("empty_like")(like, nb::arg("dtype") = torch_dtype);
  return torch.attr("empty")(wanted, nb::arg("dtype") = torch_dtype);
}

nb::object empty_array(nb::handle like, aclDataType dtype, const Dims& shape) {
  if (!PyArray_Check(like.ptr()) && kind_of(like).is_torch) return empty_torch(like, dtype, shape);
  PyArray_Descr* descr = nullptr;
  PyObject* made = nullptr;
  bool same = PyArray_Check(like.ptr());
  if (same) {
    auto* array = reinterpret_cast<PyArrayObject*>(like.ptr());
    if (dtype_of(PyArray_DESCR(array)) == dtype) {
      descr = PyArray_DESCR(array);
      Py_INCREF(descr);
    }
    same = PyArray_NDIM(array) == shape.rank;
    for (int i = 0; same && i < shape.rank; ++i) same = PyArray_DIM(array, i) == shape[i];
  }
  if (descr == nullptr) descr = PyArray_DescrFromType(numpy_type(dtype));
  if (same) {
    made =
        PyArray_NewLikeArray(reinterpret_cast<PyArrayObject*>(like.ptr()), NPY_KEEPORDER, descr, 0);
  } else {
    npy_intp dims[kMaxDims];
    for (int i = 0; i < shape.rank; ++i) dims[i] = shape[i];
    made = PyArray_Empty(shape.rank, dims, descr, 0);
  }
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

nb::object as_kind_of(nb::handle like, nb::object array) {
  if (PyArray_Check(like.ptr()) || kind_of(like).is_torch) return array;
  return nb::module_::import_("openaclnn.interop").attr("as_kind_of")(like, array);
}

void init_arrays() {
  if (_import_array() < 0) throw nb::python_error();
}

}  // namespace openaclnn::python

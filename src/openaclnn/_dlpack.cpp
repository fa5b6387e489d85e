// SPDX-License-Identifier: Apache-2.0
// torch tensors and DLPack producers as tensors.
#include <cstdint>
#include <deque>

#include "_arrays.h"
#include "aclnn/aclnn_base.h"
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
struct ArrayType {
  PyTypeObject* type;
  int (*view)(void* object, DLTensor* tensor);  // nullptr: through __dlpack__
  bool is_torch;
};

bool is_torch_type(PyTypeObject* type) {
  PyObject* torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (torch == nullptr) return false;
  const nb::object tensor = nb::getattr(torch, "Tensor", nb::none());
  return PyType_Check(tensor.ptr()) &&
         PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(tensor.ptr()));
}

// A heap type stays alive once it was seen: its address must not come to mean another.
const ArrayType& type_of(nb::handle array) {
  static auto& types = *new std::deque<ArrayType>;
  PyTypeObject* type = Py_TYPE(array.ptr());
  for (const ArrayType& known : types) {
    if (known.type == type) return known;
  }
  ArrayType met{type, nullptr, is_torch_type(type)};
  const nb::object capsule = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(type)),
                                         "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) {
    const auto* table =
        static_cast<DLPackExchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    while (table != nullptr && table->major != 1) table = table->previous;
    if (table != nullptr) met.view = table->view;
  }
  Py_INCREF(type);
  types.push_back(met);
  return types.back();
}

aclDataType dtype_of(const DLTensor& source) {
  struct Pair {
    uint8_t code, bits;
    aclDataType dtype;
  };
  constexpr uint8_t kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6;
  constexpr Pair pairs[] = {
      {kFloat, 32, ACL_FLOAT},       {kFloat, 16, ACL_FLOAT16},
      {kFloat, 64, ACL_DOUBLE},      {kBfloat, 16, ACL_BF16},
      {kInt, 8, ACL_INT8},           {kInt, 16, ACL_INT16},
      {kInt, 32, ACL_INT32},         {kInt, 64, ACL_INT64},
      {kUnsigned, 8, ACL_UINT8},     {kUnsigned, 16, ACL_UINT16},
      {kUnsigned, 32, ACL_UINT32},   {kUnsigned, 64, ACL_UINT64},
      {kComplex, 64, ACL_COMPLEX64}, {kComplex, 128, ACL_COMPLEX128},
      {kBool, 8, ACL_BOOL},
  };
  for (const Pair& pair : pairs) {
    if (source.dtype.lanes == 1 && source.dtype.code == pair.code && source.dtype.bits == pair.bits)
      return pair.dtype;
  }
  return ACL_DT_UNDEFINED;
}

}  // namespace

bool is_torch(nb::handle array) { return type_of(array).is_torch; }

void view_dlpack(nb::handle array, const char* op, const char* parameter, bool written,
                 Tensor* tensor, Kept* keep) {
  const ArrayType& known = type_of(array);
  if (written && !known.is_torch) {
    refuse(op, parameter,
           std::string("be a NumPy array or a torch tensor to be written, but got ") +
               known.type->tp_name);
  }
  DLTensor direct;
  DLTensor* source = &direct;
  if (known.view != nullptr) {
    if (known.view(array.ptr(), source) != 0) {
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

}  // namespace openaclnn::python

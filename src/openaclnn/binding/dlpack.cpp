// SPDX-License-Identifier: Apache-2.0
// torch tensors and DLPack producers as tensors.
#include "dlpack.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"

namespace openaclnn::python {
namespace {

constexpr int32_t kCpu = 1;
constexpr uint64_t kIsCopied = 2;

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

[[noreturn]] void refuse_device(const ArgumentRef& argument, int64_t type) {
  constexpr const char* names[] = {"", "CPU",    "CUDA",  "pinned CUDA", "OpenCL", "",
                                   "", "Vulkan", "Metal", "VPI",         "ROCm",   "pinned ROCm"};
  std::string device = std::to_string(type);
  if (type > kCpu && type < std::ssize(names) && *names[type] != 0)
    device += std::string(" (") + names[type] + ")";
  refuse(argument, "be on the CPU, but its DLPack device type is " + device);
}

// Checked before __dlpack__, which may copy or wait for a device.
void ask_device(nb::handle producer, const ArgumentRef& argument) {
  const nb::object ask = attribute(producer, "__dlpack_device__");
  if (!ask.is_valid()) return;  // the DLTensor has it too
  const nb::object device = ask();
  int64_t type = 0;
  if (PyTuple_Check(device.ptr()) && PyTuple_Size(device.ptr()) == 2) {
    type = PyLong_AsLongLong(PyTuple_GetItem(device.ptr(), 0));
    if (type == -1 && PyErr_Occurred() != nullptr) {
      const nb::python_error error;
      if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_OverflowError)) throw error;
      type = 0;
    }
  }
  if (type <= 0) {
    refuse(argument, "be on the CPU, but its __dlpack_device__ returned " + shown(device) +
                         ", which is not a pair of a device type and a number");
  }
  if (type != kCpu) refuse_device(argument, type);
}

// Gets the capsule of a producer, a versioned one if possible. Copies are not allowed, because a
// plan would keep reading the copy. A producer from before version 1 takes no arguments.
nb::object export_of(nb::handle dlpack) {
  static PyObject* const version = Py_BuildValue("(ii)", 1, 0);
  static PyObject* const names = Py_BuildValue("(ss)", "max_version", "copy");
  PyObject* const given[] = {version, Py_False};
  PyObject* capsule = PyObject_Vectorcall(dlpack.ptr(), given, 0, names);
  if (capsule == nullptr) {
    const nb::python_error error;
    if (!error.matches(PyExc_TypeError)) throw error;
    capsule = PyObject_CallNoArgs(dlpack.ptr());
    if (capsule == nullptr) throw nb::python_error();
  }
  return nb::steal(capsule);
}

// Consumes a capsule; its deleter runs when the last reference in `keep` is dropped. An unconsumed
// capsule could be consumed, and its memory freed, by another holder.
template <class Managed>
const Managed* take_over(nb::handle capsule, const char* name, const char* used, KeepAlive* keep) {
  constexpr const char* kOurs = "openaclnn.lent";
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed == nullptr) throw nb::python_error();
  const PyCapsule_Destructor give_back = [](PyObject* owner) {
    const nb::error_scope pending;  // the deleter may run Python, too
    auto* lent = static_cast<Managed*>(PyCapsule_GetPointer(owner, kOurs));
    if (lent->deleter != nullptr) lent->deleter(lent);
  };
  nb::object owner = nb::steal(PyCapsule_New(managed, kOurs, give_back));
  if (!owner.is_valid() || PyCapsule_SetName(capsule.ptr(), used) != 0) throw nb::python_error();
  keep->append(std::move(owner));
  return managed;
}

}  // namespace

const DLTensor* borrow(nb::handle producer, nb::handle dlpack, const ArgumentRef& argument,
                       KeepAlive* keep) {
  constexpr const char *kPlain = "dltensor", *kVersioned = "dltensor_versioned";
  ask_device(producer, argument);
  const nb::object capsule = export_of(dlpack);
  if (PyCapsule_IsValid(capsule.ptr(), kPlain) != 0)
    return &take_over<DLManagedTensor>(capsule, kPlain, "used_dltensor", keep)->tensor;
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned) == 0) {
    const char* name =
        PyCapsule_CheckExact(capsule.ptr()) ? PyCapsule_GetName(capsule.ptr()) : nullptr;
    const bool used = name != nullptr && std::strncmp(name, "used_dltensor", 13) == 0;
    refuse(argument, used ? "lend its memory by __dlpack__, but the capsule that this returned was "
                            "used before"
                          : "lend its memory by __dlpack__, but this returned " + shown(capsule) +
                                ", which is not a DLPack capsule");
  }
  const auto* managed =
      take_over<DLManagedTensorVersioned>(capsule, kVersioned, "used_dltensor_versioned", keep);
  if (managed->major != 1) {
    refuse(argument, "lend its memory in version 1 of DLPack, but its version is " +
                         std::to_string(managed->major) + "." + std::to_string(managed->minor));
  }
  if ((managed->flags & kIsCopied) != 0)
    refuse(argument, "be read where it is, but its __dlpack__ made a copy");
  return &managed->tensor;
}

bool is_usual(const DLTensor& source) {
  return source.data != nullptr && source.device.type == kCpu &&
         dtype_of(source) != ACL_DT_UNDEFINED;
}

void view_dlpack(const DLTensor& source, const ArgumentRef& argument, Tensor* tensor) {
  if (source.device.type != kCpu) refuse_device(argument, source.device.type);
  tensor->dtype = dtype_of(source);
  if (tensor->dtype == ACL_DT_UNDEFINED) {
    refuse(argument, "have a dtype of the aclnn API, but its DLPack dtype has code " +
                         std::to_string(source.dtype.code) + ", bits " +
                         std::to_string(source.dtype.bits) + " and lanes " +
                         std::to_string(source.dtype.lanes));
  }
  if (source.ndim > kMaxDims) refuse(argument, "have at most 8 dimensions, but got more than 25");
  if (source.ndim < 0 || (source.ndim > 0 && source.shape == nullptr)) {
    refuse(argument, "have a shape, but its DLPack tensor has " + std::to_string(source.ndim) +
                         " dimensions" + (source.ndim < 0 ? "" : " at no address"));
  }
  tensor->shape.rank = source.ndim;
  for (int i = 0; i < source.ndim; ++i) tensor->shape[i] = source.shape[i];
  int64_t count = 1;
  bool counted = true, empty = false;
  for (int i = 0; i < source.ndim; ++i) {
    const int64_t dim = source.shape[i];
    empty |= dim == 0;
    counted &= dim >= 0 && !__builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count);
  }
  if (!counted) {
    refuse(argument, "have a shape of 0 to 2^63 elements, but its DLPack tensor has shape " +
                         to_text(tensor->shape));
  }
  if (source.strides == nullptr) {
    tensor->strides = contiguous_strides(tensor->shape);
  } else {
    tensor->strides.rank = source.ndim;
    for (int i = 0; i < source.ndim; ++i) tensor->strides[i] = source.strides[i];
  }
  if (source.data == nullptr && !empty)
    refuse(argument, "have data, but its DLPack tensor has none");
  set_view(argument, tensor, static_cast<char*>(source.data) + source.byte_offset);
}

}  // namespace openaclnn::python

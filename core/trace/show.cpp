// SPDX-License-Identifier: Apache-2.0
#include "core/trace/show.h"

#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "acl/acl.h"
#include "core/support/arithmetic.h"
#include "core/support/no_destructor.h"
#include "core/trace/core_calls.h"
#include "core/trace/recorder.h"

namespace openaclnn::trace {
namespace {

struct Known {
  Known() {
    pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                   [] { get().mutex.unlock(); });
  }
  static Known& get() {
    static constinit NoDestructor<Known> known;
    return known.get();
  }
  std::mutex mutex;
  std::unordered_set<const aclTensor*> tensors;  // alive: only these may be asked
  std::unordered_map<const aclScalar*, std::string> scalars;
};

// At load, when there is one thread: fork handlers are registered once.
[[gnu::constructor]] void begin_known() { (void)Known::get(); }

using Getter = aclnnStatus (*)(const aclTensor*, int64_t**, uint64_t*);

struct Dims {
  Dims(Getter get, const aclTensor* tensor) { (void)get(tensor, &at, &rank); }
  ~Dims() { delete[] at; }
  Dims(const Dims&) = delete;
  std::string text() const { return show_array(at == nullptr ? &none : at, rank); }

  int64_t* at = nullptr;
  uint64_t rank = 0;
  int64_t none = 0;
};

bool is_contiguous(const Dims& shape, const Dims& strides) {
  int64_t expected = 1;
  for (uint64_t i = shape.rank; i-- > 0;) {
    if (shape.at[i] != 1 && strides.at[i] != expected) return false;
    expected *= shape.at[i];
  }
  return true;
}

template <class T>
T load(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

std::string show(const void* address) {
  if (address == nullptr) return "NULL";
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return text;
}

std::string show(const char* text) {
  if (text == nullptr) return "NULL";
  std::string quoted = "\"";
  for (; *text != '\0'; ++text) {
    if (*text == '\n') {
      quoted += "\\n";
    } else {
      if (*text == '"' || *text == '\\') quoted += '\\';
      quoted += *text;
    }
  }
  return quoted + "\"";
}

std::string show(bool value) { return value ? "true" : "false"; }

std::string show(double value) {
  const DefaultEnvironment environment;
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string show(float value) {
  const DefaultArithmetic arithmetic;
  pin(value);
  return show(static_cast<double>(value));
}

std::string show(const aclTensor* tensor) {
  {
    Known& known = Known::get();
    std::lock_guard lock(known.mutex);
    if (known.tensors.count(tensor) == 0) return show(static_cast<const void*>(tensor));
  }
  aclDataType dtype = ACL_DT_UNDEFINED;
  (void)openaclnn_aclGetDataType(tensor, &dtype);
  const Dims shape(openaclnn_aclGetViewShape, tensor), strides(openaclnn_aclGetViewStrides, tensor);
  std::string text = std::string(dtype_name(dtype)) + " " + shape.text();
  if (shape.rank == strides.rank && !is_contiguous(shape, strides)) {
    text += " strides " + strides.text();
  }
  int64_t offset = 0;
  if (openaclnn_aclGetViewOffset(tensor, &offset) == 0 && offset != 0) {
    text += " offset " + std::to_string(offset);
  }
  void* data = nullptr;
  (void)openaclnn_aclGetRawTensorAddr(tensor, &data);
  return text + " at " + show(data);
}

std::string show(const aclScalar* scalar) {
  Known& known = Known::get();
  std::lock_guard lock(known.mutex);
  const auto found = known.scalars.find(scalar);
  return found != known.scalars.end() ? found->second : show(static_cast<const void*>(scalar));
}

std::string show_scalar(const void* value, aclDataType dtype) {
  const std::string name = dtype_name(dtype);
  if (value == nullptr) return "NULL";
  switch (dtype) {
    case ACL_FLOAT: return name + " " + show(load<float>(value));
    case ACL_DOUBLE: return name + " " + show(load<double>(value));
    case ACL_FLOAT16: return name + " " + show(openaclnn_aclFloat16ToFloat(load<uint16_t>(value)));
    case ACL_INT8: return name + " " + show(int{load<int8_t>(value)});
    case ACL_INT16: return name + " " + show(load<int16_t>(value));
    case ACL_INT32: return name + " " + show(load<int32_t>(value));
    case ACL_INT64: return name + " " + show(load<int64_t>(value));
    case ACL_UINT8: return name + " " + show(unsigned{load<uint8_t>(value)});
    case ACL_BOOL: return name + " " + show(load<uint8_t>(value) != 0);
    case ACL_BF16: {
      const uint32_t bits = uint32_t{load<uint16_t>(value)} << 16;
      return name + " " + show(load<float>(&bits));
    }
    default: return name + " at " + show(value);
  }
}

std::string show_view(aclDataType dtype, const int64_t* shape, const int64_t* strides, int rank,
                      const void* data) {
  const auto count = static_cast<uint64_t>(rank);
  int64_t expected = 1;
  bool contiguous = true;
  for (int i = rank; i-- > 0;) {
    contiguous &= shape[i] == 1 || strides[i] == expected;
    expected *= shape[i];
  }
  std::string text = std::string(dtype_name(dtype)) + " " + show_array(shape, count);
  if (!contiguous) text += " strides " + show_array(strides, count);
  return text + " at " + show(data);
}

std::string show_stream(const void* handle) {
  const void* identity = openaclnn_identity_of_stream(handle);
  if (identity == nullptr) return "NULL";
  const std::string number = "stream " + std::to_string(Recorder::get().stream_number(identity));
  return handle == nullptr ? "NULL (" + number + ")" : number;
}

void know_tensor(const aclTensor* tensor) {
  if (tensor == nullptr) return;
  Known& known = Known::get();
  std::lock_guard lock(known.mutex);
  known.tensors.insert(tensor);
}

bool is_known(const aclTensor* tensor) {
  Known& known = Known::get();
  std::lock_guard lock(known.mutex);
  return known.tensors.count(tensor) != 0;
}

void forget_tensor(const aclTensor* tensor) {
  Known& known = Known::get();
  std::lock_guard lock(known.mutex);
  known.tensors.erase(tensor);
}

void know_scalar(const aclScalar* scalar, std::string text) {
  if (scalar == nullptr) return;
  Known& known = Known::get();
  std::lock_guard lock(known.mutex);
  known.scalars[scalar] = std::move(text);
}

}  // namespace openaclnn::trace

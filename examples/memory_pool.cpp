// SPDX-License-Identifier: Apache-2.0
// Memory the way frameworks keep it: a pool that grows inside addresses reserved once, and beside
// it a pool of buffers. LeakyRelu and Elu run on views of both, in two dtypes.
//
//   openaclnn cc memory_pool.cpp -o memory_pool && ./memory_pool
//   OPENACLNN_DEVICES=2 ./memory_pool
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_leaky_relu.h"

static void check(int status, const char* call) {
  if (status == ACL_SUCCESS) return;
  std::printf("%s returned %d\n%s", call, status, aclGetRecentErrMsg());
  std::exit(1);
}
#define CHECK(call) check(call, #call)

static const size_t kAlignment = 128;

static size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

struct Memory {
  virtual ~Memory() {}
  virtual void* take(size_t size) = 0;
  virtual void give_back(void* data, size_t size) = 0;
};

// What is taken last is given back first. Physical memory is mapped behind what is there already,
// so a piece may lie across two mappings.
class VirtualPool : public Memory {
 public:
  explicit VirtualPool(uint32_t device) {
    properties_.handleType = ACL_MEM_HANDLE_TYPE_NONE;
    properties_.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    properties_.memAttr = ACL_HBM_MEM_HUGE;
    properties_.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    properties_.location.id = device;
    CHECK(aclrtMemGetAllocationGranularity(&properties_, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
                                           &granularity_));
    void* begin = nullptr;
    CHECK(aclrtReserveMemAddress(&begin, size_t(32) << 30, 0, nullptr, 1));
    begin_ = static_cast<char*>(begin);
  }
  ~VirtualPool() {
    for (const std::pair<void*, aclrtDrvMemHandle>& part : parts_) {
      CHECK(aclrtUnmapMem(part.first));
      CHECK(aclrtFreePhysical(part.second));
    }
    CHECK(aclrtReleaseMemAddress(begin_));
  }
  void* take(size_t size) override {
    size = round_up(size, kAlignment);
    if (used_ + size > mapped_) grow(round_up(used_ + size - mapped_, granularity_));
    void* data = begin_ + used_;
    used_ += size;
    return data;
  }
  void give_back(void*, size_t size) override { used_ -= round_up(size, kAlignment); }

 private:
  void grow(size_t size) {
    aclrtDrvMemHandle handle = nullptr;
    CHECK(aclrtMallocPhysical(&handle, size, &properties_, 0));
    CHECK(aclrtMapMem(begin_ + mapped_, size, 0, handle, 0));
    parts_.push_back(std::make_pair(begin_ + mapped_, handle));
    mapped_ += size;
  }

  aclrtPhysicalMemProp properties_ = {};
  size_t granularity_ = 0, mapped_ = 0, used_ = 0;
  char* begin_ = nullptr;
  std::vector<std::pair<void*, aclrtDrvMemHandle>> parts_;
};

// Buffers are kept and used again when they are large enough.
class BufferPool : public Memory {
 public:
  ~BufferPool() {
    for (const Buffer& buffer : buffers_) CHECK(aclrtFree(buffer.data));
  }
  void* take(size_t size) override {
    for (Buffer& buffer : buffers_) {
      if (buffer.used || buffer.size < size) continue;
      buffer.used = true;
      return buffer.data;
    }
    Buffer made = {nullptr, round_up(size, kAlignment), true};
    CHECK(aclrtMalloc(&made.data, made.size, ACL_MEM_MALLOC_HUGE_FIRST));
    if (reinterpret_cast<uintptr_t>(made.data) % kAlignment != 0) std::abort();
    buffers_.push_back(made);
    return made.data;
  }
  void give_back(void* data, size_t) override {
    for (Buffer& buffer : buffers_) {
      if (buffer.data == data) buffer.used = false;
    }
  }

 private:
  struct Buffer {
    void* data;
    size_t size;
    bool used;
  };
  std::vector<Buffer> buffers_;
};

// x is 3 by 6, in quarters from -2.25 on; the view leaves out two columns and is transposed.
static const int64_t kStorage[] = {3, 6}, kView[] = {4, 3}, kStrides[] = {1, 6}, kOffset = 1;
static const int kCount = 18;

static aclTensor* view_of(void* data, aclDataType dtype) {
  return aclCreateTensor(kView, 2, dtype, kStrides, kOffset, ACL_FORMAT_ND, kStorage, 2, data);
}

static void write_ramp(void* data, aclDataType dtype) {
  std::vector<float> single(kCount);
  std::vector<aclFloat16> half(kCount);
  for (int i = 0; i < kCount; ++i) {
    single[i] = static_cast<float>(i - 9) / 4;
    half[i] = aclFloatToFloat16(single[i]);
  }
  const size_t bytes = kCount * aclDataTypeSize(dtype);
  const void* from = dtype == ACL_FLOAT ? static_cast<void*>(single.data()) : half.data();
  CHECK(aclrtMemcpy(data, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
}

static void print(const std::string& name, const void* data, aclDataType dtype) {
  const size_t bytes = kCount * aclDataTypeSize(dtype);
  std::vector<float> single(kCount);
  std::vector<aclFloat16> half(kCount);
  void* to = dtype == ACL_FLOAT ? static_cast<void*>(single.data()) : half.data();
  CHECK(aclrtMemcpy(to, bytes, data, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  std::printf("%s:", name.c_str());
  for (int i = 0; i < kCount; ++i) {
    std::printf(" %.7g", dtype == ACL_FLOAT ? single[i] : aclFloat16ToFloat(half[i]));
  }
  std::printf("\n");
}

// Tensors, scalars and the workspace's piece go as soon as the work is submitted.
static void run(bool elu, void* x, void* y, aclDataType dtype, Memory& memory, aclrtStream stream) {
  aclTensor *self = view_of(x, dtype), *out = view_of(y, dtype);
  float slope_value = 0.1f, one_value = 1;
  aclScalar* slope = aclCreateScalar(&slope_value, ACL_FLOAT);
  aclScalar* one = aclCreateScalar(&one_value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(elu ? aclnnEluGetWorkspaceSize(self, one, one, one, out, &size, &executor)
            : aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  void* workspace = size > 0 ? memory.take(size) : nullptr;
  CHECK(elu ? aclnnElu(workspace, size, executor, stream)
            : aclnnLeakyRelu(workspace, size, executor, stream));
  if (size > 0) memory.give_back(workspace, size);
  for (aclTensor* tensor : {self, out}) CHECK(aclDestroyTensor(tensor));
  for (aclScalar* scalar : {slope, one}) CHECK(aclDestroyScalar(scalar));
}

static void run_all(const std::string& name, Memory& memory, aclrtStream stream) {
  const size_t large = (size_t(2) << 20) - 64;  // what follows lies across a border
  void* filler = memory.take(large);
  for (aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16}) {
    const size_t bytes = kCount * aclDataTypeSize(dtype);
    void *x = memory.take(bytes), *y = memory.take(bytes);
    for (bool elu : {false, true}) {
      write_ramp(x, dtype);
      CHECK(aclrtMemset(y, bytes, 0, bytes));
      run(elu, x, y, dtype, memory, stream);
      CHECK(aclrtSynchronizeStream(stream));
      const char* width = dtype == ACL_FLOAT ? "float32" : "float16";
      print(name + (elu ? " elu " : " leaky_relu ") + width, y, dtype);
    }
    memory.give_back(y, bytes);
    memory.give_back(x, bytes);
  }
  memory.give_back(filler, large);
}

// The ramp goes to another device and comes back, where there is another.
static void copy_between_devices(uint32_t count) {
  int32_t can = 0;
  if (count > 1) CHECK(aclrtDeviceCanAccessPeer(&can, 0, 1));
  std::printf("another device: %s\n", can != 0 ? "yes" : "no");
  if (can == 0) return;
  const size_t bytes = kCount * sizeof(float);
  void *here = nullptr, *there = nullptr;
  CHECK(aclrtMalloc(&here, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  write_ramp(here, ACL_FLOAT);
  CHECK(aclrtDeviceEnablePeerAccess(1, 0));
  CHECK(aclrtSetDevice(1));
  CHECK(aclrtDeviceEnablePeerAccess(0, 0));
  CHECK(aclrtMalloc(&there, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(there, bytes, here, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE));
  print("there", there, ACL_FLOAT);
  CHECK(aclrtFree(there));
  CHECK(aclrtDeviceDisablePeerAccess(0));
  CHECK(aclrtResetDevice(1));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtDeviceDisablePeerAccess(1));
  CHECK(aclrtFree(here));
  CHECK(aclrtResetDevice(0));
}

int main() {
  CHECK(aclInit(nullptr));
  uint32_t count = 0;
  CHECK(aclrtGetDeviceCount(&count));
  const char* name = aclrtGetSocName();
  if (name == nullptr || *name == '\0') return 1;
  CHECK(aclrtSetDevice(0));
  size_t free = 0, total = 0;
  CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  {
    std::unique_ptr<Memory> virtual_pool(new VirtualPool(0)), buffers(new BufferPool);
    run_all("virtual", *virtual_pool, stream);
    run_all("buffers", *buffers, stream);
    copy_between_devices(count);
    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtSynchronizeDevice());
    CHECK(aclrtResetDevice(0));
  }  // the pools go after the device
  CHECK(aclFinalize());
  return 0;
}

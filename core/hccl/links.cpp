// SPDX-License-Identifier: Apache-2.0
// What only the links between NPUs have. The calls check their communicator and refuse.
#include "core/hccl/calls.h"
#include "core/hccl/task.h"

using namespace openaclnn::hccl;

namespace {

int32_t refuse(const char* call, void* comm, const char* sentence) {
  return guarded(call, [&] {
    (void)find(comm);
    throw Failure(kNotSupported, sentence);
  });
}

constexpr const char* kRecovery =
    "a communicator is not suspended or resumed on a CPU; destroy it and create another";
constexpr const char* kNetworkCards = "a CPU has no network cards of NPUs to choose from";
constexpr const char* kZeroCopy =
    "collectives do not exchange addresses, as on Atlas A2; they take any device memory";
constexpr const char* kWindows =
    "ranks do not reach each other's memory; use HcclSend and HcclRecv";

}  // namespace

int32_t HcclCommSuspend(void* comm) { return refuse("HcclCommSuspend", comm, kRecovery); }

int32_t HcclCommResume(void* comm) { return refuse("HcclCommResume", comm, kRecovery); }

int32_t HcclCommWorkingDevNicSet(void* comm, uint32_t*, bool*, uint32_t) {
  return refuse("HcclCommWorkingDevNicSet", comm, kNetworkCards);
}

int32_t HcclCommSetMemoryRange(void* comm, void*, size_t, size_t, uint64_t) {
  return refuse("HcclCommSetMemoryRange", comm, kZeroCopy);
}

int32_t HcclCommUnsetMemoryRange(void* comm, void*) {
  return refuse("HcclCommUnsetMemoryRange", comm, kZeroCopy);
}

int32_t HcclCommActivateCommMemory(void* comm, void*, size_t, size_t, void*, uint64_t) {
  return refuse("HcclCommActivateCommMemory", comm, kZeroCopy);
}

int32_t HcclCommDeactivateCommMemory(void* comm, void*) {
  return refuse("HcclCommDeactivateCommMemory", comm, kZeroCopy);
}

int32_t HcclCommRegister(void* comm, void*, uint64_t, void** handle, uint32_t) {
  if (handle != nullptr) *handle = nullptr;
  return refuse("HcclCommRegister", comm, kWindows);
}

int32_t HcclCommDeregister(void* comm, void*) {
  return refuse("HcclCommDeregister", comm, kWindows);
}

int32_t HcclCommExchangeMem(void* comm, void*, uint32_t*, uint32_t) {
  return refuse("HcclCommExchangeMem", comm, kWindows);
}

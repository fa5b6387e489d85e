// SPDX-License-Identifier: Apache-2.0
// Allocators that a program registers for a stream. Only models would call them.
#include <map>
#include <mutex>

#include "acl/acl_rt_allocator.h"
#include "core/acl/description.h"
#include "core/support/api_guard.h"
#include "core/support/fork.h"
#include "core/support/handles.h"
#include "core/support/no_destructor.h"
#include "core/runtime/stream.h"

using namespace openaclnn;

namespace {

struct Allocator {
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc allocate = nullptr;
  aclrtAllocatorFreeFunc free = nullptr;
  aclrtAllocatorAllocAdviseFunc allocate_at = nullptr;
  aclrtAllocatorGetAddrFromBlockFunc address_of = nullptr;
};

HandlePool<Allocator>& allocators() { return pool_of<Allocator>(1 << 12); }

struct RegisteredAllocators {
  RegisteredAllocators() { hold_across_fork(mutex); }

  static RegisteredAllocators& get() {
    static constinit NoDestructor<RegisteredAllocators> registered;
    return registered.get();
  }

  std::mutex mutex;
  std::map<int32_t, std::pair<aclrtAllocatorDesc, Allocator>> of_stream;  // by its number
};

using HeldAllocator = HandlePool<Allocator>::Hold;

Status find_allocator(const char* call, aclrtAllocatorDesc handle, HeldAllocator* found) {
  return find_object(allocators(), call, "allocatorDesc", static_cast<Allocator*>(handle), found);
}

template <class T>
aclError set_member(const char* call, aclrtAllocatorDesc handle, const char* name,
                    T Allocator::* member, T value) {
  HeldAllocator own;
  Status status = find_allocator(call, handle, &own);
  if (status.ok()) status = not_null(call, name, reinterpret_cast<void*>(value));
  if (status.ok()) (*own).*member = value;
  return status.code();
}

Status find_named_stream(const char* call, aclrtStream handle, PinnedStream* stream) {
  if (Status null = not_null(call, "stream", handle, ObjectKind::stream); !null.ok()) return null;
  const Status status = find_stream(handle, stream, call);
  return status.ok() ? status : with_call(status, call);
}

}  // namespace

aclrtAllocatorDesc aclrtAllocatorCreateDesc(void) {
  Allocator* made = allocators().create();
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, "aclrtAllocatorCreateDesc",
              "too many live objects")
      .null();
}

aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc) {
  return end_object(allocators(), "aclrtAllocatorDestroyDesc", "allocatorDesc",
                    static_cast<Allocator*>(allocatorDesc));
}

aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocator allocator) {
  return set_member("aclrtAllocatorSetObjToDesc", allocatorDesc, "allocator", &Allocator::object,
                    allocator);
}

aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                          aclrtAllocatorAllocFunc func) {
  return set_member("aclrtAllocatorSetAllocFuncToDesc", allocatorDesc, "func", &Allocator::allocate,
                    func);
}

aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                         aclrtAllocatorFreeFunc func) {
  return set_member("aclrtAllocatorSetFreeFuncToDesc", allocatorDesc, "func", &Allocator::free,
                    func);
}

aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                aclrtAllocatorAllocAdviseFunc func) {
  return set_member("aclrtAllocatorSetAllocAdviseFuncToDesc", allocatorDesc, "func",
                    &Allocator::allocate_at, func);
}

aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                     aclrtAllocatorGetAddrFromBlockFunc func) {
  return set_member("aclrtAllocatorSetGetAddrFromBlockFuncToDesc", allocatorDesc, "func",
                    &Allocator::address_of, func);
}

aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc) {
  constexpr const char* call = "aclrtAllocatorRegister";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    PinnedStream own;
    HeldAllocator allocator;
    Status status = find_named_stream(call, stream, &own);
    if (status.ok()) status = find_allocator(call, allocatorDesc, &allocator);
    if (!status.ok()) return status.code();
    if (allocator->object == nullptr || allocator->allocate == nullptr ||
        allocator->free == nullptr || allocator->address_of == nullptr) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::call_missing, call,
                  "allocatorDesc must have an object and functions that allocate, free and give "
                  "the address; set them first")
          .code();
    }
    RegisteredAllocators& all = RegisteredAllocators::get();
    std::lock_guard lock(all.mutex);
    all.of_stream[own->id] = {allocatorDesc, *allocator};
    return ACL_SUCCESS;
  });
}

aclError aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc* allocatorDesc,
                                   aclrtAllocator* allocator, aclrtAllocatorAllocFunc* allocFunc,
                                   aclrtAllocatorFreeFunc* freeFunc,
                                   aclrtAllocatorAllocAdviseFunc* allocAdviseFunc,
                                   aclrtAllocatorGetAddrFromBlockFunc* getAddrFromBlockFunc) {
  constexpr const char* call = "aclrtAllocatorGetByStream";
  PinnedStream own;
  Status status = find_named_stream(call, stream, &own);
  const std::pair<const char*, const void*> results[] = {
      {"allocatorDesc", allocatorDesc},
      {"allocator", allocator},
      {"allocFunc", allocFunc},
      {"freeFunc", freeFunc},
      {"allocAdviseFunc", allocAdviseFunc},
      {"getAddrFromBlockFunc", getAddrFromBlockFunc}};
  for (const auto& [name, result] : results) {
    if (status.ok()) status = not_null(call, name, result);
  }
  if (!status.ok()) return status.code();
  RegisteredAllocators& all = RegisteredAllocators::get();
  std::unique_lock lock(all.mutex);
  const auto found = all.of_stream.find(own->id);
  if (found == all.of_stream.end()) {
    lock.unlock();
    return fail(ACL_ERROR_INVALID_PARAM, Reason::call_missing, call,
                "no allocator is registered for the stream; call aclrtAllocatorRegister first")
        .code();
  }
  const Allocator& known = found->second.second;
  *allocatorDesc = found->second.first;
  *allocator = known.object;
  *allocFunc = known.allocate;
  *freeFunc = known.free;
  *allocAdviseFunc = known.allocate_at;
  *getAddrFromBlockFunc = known.address_of;
  return ACL_SUCCESS;
}

aclError aclrtAllocatorUnregister(aclrtStream stream) {
  PinnedStream own;
  const Status status = find_named_stream("aclrtAllocatorUnregister", stream, &own);
  if (!status.ok()) return status.code();
  RegisteredAllocators& all = RegisteredAllocators::get();
  std::lock_guard lock(all.mutex);
  all.of_stream.erase(own->id);
  return ACL_SUCCESS;
}

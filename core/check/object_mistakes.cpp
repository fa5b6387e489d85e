// SPDX-License-Identifier: Apache-2.0
// Reports objects and memory that are used or destroyed after their end, or never destroyed.
#include <dlfcn.h>
#include <malloc.h>

#include <string_view>

#include "acl/acl_rt.h"
#include "core/base/dtype.h"
#include "core/base/executor.h"
#include "core/base/view.h"
#include "core/check/state.h"
#include "core/check/suppression.h"
#include "core/runtime/stream.h"

namespace openaclnn::check {

namespace {

bool lies_in_reservation(const void* address) {
  const Block* own = is_device_address(address) ? block_at(address) : nullptr;
  return own != nullptr && own->mapping_index != nullptr;
}

// aclDestroyTensor, aclrtFree, aclrtDestroyStreamForce …
bool ends_objects(const char* call) {
  return std::strstr(call, "Destroy") != nullptr || std::strstr(call, "Free") != nullptr;
}

void report_free_in_use(const char* call, const void* address, const Access& use,
                        const Object* host_memory) {
  Report report("free_in_use");
  report.what.add(call).add(" frees ").pointer(address).add(" while ").add(use.call);
  report.what.add(" may still ").add(use.written ? "write" : "read").add(" it (");
  report.what.add(use.argument).add(") on ");
  add_stream(report.what, use.stream);
  report.what.add(": the host has not waited for that stream.");
  report.at("here", call, stack_here()).at("the use is", use.call, use.stack);
  add_memory(report, reinterpret_cast<uintptr_t>(address));
  if (host_memory != nullptr) {
    report.at("memory made by", host_memory->call, host_memory->made);
  }
  report.advice = "call aclrtSynchronizeStream before memory is freed that a stream uses.";
  emit(report);
}

// Explains why memory cannot be freed.
void report_wrong_free(const char* call, ObjectKind kind, const void* address,
                       const Object* object) {
  const Block* own = is_device_address(address) ? block_at(address) : nullptr;
  const auto at = reinterpret_cast<uintptr_t>(address);
  const bool freed = own != nullptr ? at == own->begin && !own->live
                                    : object != nullptr && is_memory(object->kind) && !object->live;
  Report report(freed ? "double_free" : "wrong_free");
  report.what.add(call).add(" got ").pointer(address);
  report.advice = freed ? "free memory once, after its last use."
                        : "free what aclrtMalloc gave with aclrtFree, what aclrtMallocHost gave "
                          "with aclrtFreeHost, and the rest as it was made.";
  if (freed) {
    report.what.add(", which was freed before.");
  } else if (own != nullptr && at < own->end()) {
    if (at == own->begin) {
      report.what.add(", which is device memory.");
      report.advice = "free device memory with aclrtFree.";
    } else {
      report.what.add(", which lies ").number(at - own->begin).add(" bytes inside an allocation.");
      report.advice = "free memory with the address that the allocation gave.";
    }
  } else if (object != nullptr && object->live && is_memory(object->kind)) {
    report.what.add(", which is host memory.");
    report.advice = "free host memory with aclrtFreeHost.";
  } else {
    report.what.add(", which is not ").add(name_of(kind)).add(" that acl allocated.");
  }
  report.is_consequence =
      own == nullptr && object == nullptr && is_consequence(MissingResource::memory);
  report.at("here", call, stack_here());
  add_memory(report, at);
  if (own == nullptr && object != nullptr && is_memory(object->kind)) {
    report.at("memory made by", object->call, object->made);
    if (!object->live) report.at("freed by", object->ended_by, object->ended);
  }
  emit(report);
}

void report_stale(const char* call, ObjectKind kind, const char* argument, const void* handle,
                  const Object* object) {
  const bool known = object != nullptr && !object->live && object->kind == kind;
  const bool ran = known && kind == ObjectKind::executor && !ends_objects(object->ended_by);
  const Stack here = stack_here();
  if (here.entry != nullptr &&
      (call == nullptr || std::string_view(here.entry).starts_with(call))) {
    call = here.entry;  // of an operator, its phase
  }
  if (call == nullptr) call = "a call";
  Report report(!known               ? "unknown_handle"
                : ends_objects(call) ? "double_free"
                : ran                ? "executor_rerun"
                                     : "use_after_destroy");
  report.is_consequence = object == nullptr && is_consequence(resource_of(kind));
  report.what.add(call).add(" got ").add(argument).add(" ");
  report.what.pointer(handle);
  report.at("here", call, here);
  if (object != nullptr && !known) {
    report.what.add(object->live ? ", which is an " : ", which was an ").add(name_of(object->kind));
    report.what.add(", not an ").add(name_of(kind)).add(".");
    report.advice = "give the handle that the creating call of that kind returned.";
  } else if (!known) {
    report.what.add(is_device_address(handle) ? ", which is device memory, not an "
                                              : ", which was never an ");
    report.what.add(name_of(kind)).add(".");
    report.advice = "give the handle that the creating call returned, and look at its status.";
  } else if (ran) {
    report.what.add(", an executor that was run before; running consumes it.");
    report.advice =
        "call phase 1 again for each run, or aclSetAclOpExecutorRepeatable right after phase 1.";
  } else {
    report.what.add(", an ").add(name_of(kind)).add(" that was destroyed before.");
    const bool in_list = kind == ObjectKind::tensor || kind == ObjectKind::scalar;
    report.advice = !ends_objects(call) ? "destroy an object after its last use."
                    : in_list ? "destroy an object once; a list destroys the objects in it."
                              : "destroy an object once.";
  }
  if (object != nullptr) {
    report.at("made by", object->call, object->made);
    if (!object->live) report.at(ran ? "run by" : "destroyed by", object->ended_by, object->ended);
  }
  emit(report);
}

// torch_npu keeps the memory of its allocator and the streams of its pool until the process ends.
bool is_kept_until_exit(const Stack& made) {
  Dl_info maker;
  return made.count > 0 && dladdr(made.frame[0], &maker) != 0 && maker.dli_fname != nullptr &&
         std::strstr(maker.dli_fname, "/libtorch_npu.so") != nullptr;
}

// Streams of a device end with it when it is reset. An executor that phase 2 refused is part of
// that mistake. Under the lock of the state.
bool is_left_behind(ObjectKind kind, const void* handle) {
  if (kind == ObjectKind::executor) {
    return State::get().not_launched.count(handle) != 0;
  }
  if (kind != ObjectKind::stream) return false;
  const PinnedStream stream(streams(), handle);
  return !stream || stream->owner() == nullptr;
}

// Tells apart objects that were made on one line.
void add_identity(Sentence& sentence, const Object& object, const void* handle) {
  if (handle == nullptr) return;
  const Tensor* tensor = object.kind != ObjectKind::tensor
                             ? nullptr
                             : tensors().find(static_cast<const aclTensor*>(handle));
  if (tensor != nullptr) {
    sentence.add(", ").add(dtype_name(tensor->dtype)).add(" ");
    sentence.add(to_text(tensor->shape).c_str()).add(" at ").pointer(tensor->data).add(",");
  } else if (is_memory(object.kind)) {
    sentence.add(" at ").pointer(handle).add(object.kind == ObjectKind::host_memory ? "" : ",");
  } else {
    sentence.add(" ").pointer(handle);
  }
}

void report_left(const char* call, const Object& first, const void* handle, size_t count,
                 size_t bytes) {
  const bool memory = is_memory(first.kind);
  Report report("leak");
  report.what.number(count).add(memory ? " piece" : " ").add(memory ? "" : name_of(first.kind));
  if (count > 1) report.what.add("s");
  if (memory) report.what.add(" of ").add(name_of(first.kind));
  if (bytes > 0) report.what.add(", ").number(bytes).add(count > 1 ? " bytes in all," : " bytes");
  if (count == 1) add_identity(report.what, first, handle);
  report.what.add(count == 1 ? " is" : " are").add(" still alive at ").add(call).add(".");
  report.at("made by", first.call, first.made);
  report.advice = memory ? "free it before aclFinalize."
                  : first.kind == ObjectKind::executor
                      ? "run it, or destroy it with aclDestroyAclOpExecutor, before aclFinalize."
                      : "destroy it before aclFinalize.";
  emit(report);
}

}  // namespace

void ending(const char* call, ObjectKind kind, const void* handle) {
  State& state = State::get();
  const auto begin = reinterpret_cast<uintptr_t>(handle);
  Block* own = is_device_address(handle) ? block_at(handle) : nullptr;
  if (kind == ObjectKind::reserved_memory) own = block_or_reservation_at(handle);
  Access use;
  Object host_memory;
  bool in_use = false;
  {
    std::lock_guard lock(state.mutex);
    if (is_memory(kind)) {
      // Host memory is not freed before this call ends.
      const size_t size =
          own != nullptr ? own->size : malloc_usable_size(const_cast<void*>(handle));
      const Access* pending = state.happens_before.pending(block_of(begin), begin, begin + size);
      if (pending != nullptr) {
        use = *pending, in_use = true;
        state.happens_before.synchronised(use.stream);  // we wait for it below
      }
    }
    if (own != nullptr) {
      forget_dropped(state, begin, own->end());
      if (own->mapped) {
        state.happens_before.forget(block_of(begin), begin, own->end());
      } else {
        state.happens_before.forget(begin);
        state.initialised.forget(begin);
      }
    } else {
      if (in_use) host_memory = *state.ledger.find(handle);
      state.ledger.end(call, handle);
      if (kind == ObjectKind::executor) {
        state.plans.erase(static_cast<const aclOpExecutor*>(handle));
        state.not_launched.erase(handle);
      }
      if (kind == ObjectKind::event || kind == ObjectKind::notify)
        state.happens_before.forget_event(handle);
    }
  }
  if (in_use) {
    report_free_in_use(call, handle, use, own == nullptr ? &host_memory : nullptr);
    drain_unseen();  // so that no task accesses freed memory
  }
  if (own != nullptr) retire(*own, call);
}

void refused(const char* call, ObjectKind kind, const char* argument, const void* handle) {
  used();
  State& state = State::get();
  Object object;
  bool found = false;
  {
    std::lock_guard lock(state.mutex);
    if (const Object* known = state.ledger.find(handle)) object = *known, found = true;
  }
  if (kind == ObjectKind::reserved_memory || kind == ObjectKind::mapped_memory ||
      lies_in_reservation(handle)) {
    report_wrong_range(call, kind, handle);
  } else if (is_memory(kind)) {
    report_wrong_free(call, kind, handle, found ? &object : nullptr);
  } else {
    report_stale(call, kind, argument, handle, found ? &object : nullptr);
  }
}

void called(const char* call) {
  used();
  static std::atomic<bool> reported = false;
  if (!State::get().finalised) return;
  if (call == nullptr) call = "a call";
  Report report("use_after_finalize");
  report.is_consequence = reported.exchange(true);
  report.what.add(call).add(" is called after aclFinalize: on a device it fails.");
  report.at("here", call, stack_here());
  report.advice = "call aclFinalize last.";
  emit(report);
}

void finalised(const char* call) {
  used();
  State& state = State::get();
  state.finalised = true;
  struct Left {
    Object object;
    const void* handle;
    size_t count, bytes;
  };
  std::vector<Left> all;
  {
    std::lock_guard lock(state.mutex);
    for (const Ledger::Left& left : state.ledger.left(is_left_behind)) {
      if (is_kept_until_exit(left.first->made)) continue;
      all.push_back({*left.first, left.handle, left.count, 0});
    }
  }
  std::unordered_map<uint64_t, size_t> memory;  // place to position
  for_each_live([&](const Block& own) {
    if (is_kept_until_exit(own.made)) return;
    const auto [position, fresh] = memory.try_emplace(own.made.hash(), all.size());
    if (fresh) {
      Left left = {};
      left.object.kind =
          own.is_reservation() ? ObjectKind::reserved_memory : ObjectKind::device_memory;
      left.object.call = own.call;
      left.object.made = own.made;
      left.handle = reinterpret_cast<void*>(own.begin);
      all.push_back(left);
    }
    all[position->second].count += 1;
    all[position->second].bytes += own.size;
  });
  for (const Left& left : all) report_left(call, left.object, left.handle, left.count, left.bytes);
}

}  // namespace openaclnn::check

// SPDX-License-Identifier: Apache-2.0
// Activities of the device for one subscriber: kernels, and the external identifiers that were
// pushed when they were submitted. Records wait for msptiActivityFlushAll. Other kinds (calls,
// memory, collectives) are accepted and stay empty: torch_npu shows nothing of them.
#include "core/mspti/mspti.h"

#include <pthread.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/work_listener.h"
#include "core/support/no_destructor.h"

using namespace openaclnn;

namespace {

struct Activity {
  int64_t begin, end;
  Submission submission;
  int32_t device, stream;
  const char* name;
};

constexpr uint32_t kMostExternalKind = 15;

struct Activities {
  Activities() {  // the library is never unloaded
    pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                   [] {
                     get().subscribed = false;  // the parent's
                     get().pending.clear();
                     get().mutex.unlock();
                   });
  }
  static Activities& get() {
    static constinit NoDestructor<Activities> activities;
    return activities.get();
  }
  bool wants(msptiActivityKind kind) const { return (enabled >> kind & 1) != 0; }
  void listen();

  std::mutex mutex;
  bool subscribed = false;
  uint32_t enabled = 0;  // a bit for each kind
  msptiBuffersCallbackRequestFunc request = nullptr;
  msptiBuffersCallbackCompleteFunc complete = nullptr;
  std::vector<Activity> pending;
  std::set<std::string> names;  // records point to them
  uint64_t correlations = 0;
};

void record(const DoneWork& done) noexcept {
  int32_t device = 0, stream = 0;
  if (!openaclnn_number_of_stream(done.stream, &device, &stream)) return;
  Activities& own = Activities::get();
  std::lock_guard lock(own.mutex);
  if (!own.subscribed) return;
  try {
    const char* name = own.names.emplace(done.name).first->c_str();
    own.pending.push_back({done.begin, done.end, done.submission, device, stream, name});
  } catch (const std::bad_alloc&) {  // the profile lacks this record
  }
}

void Activities::listen() {
  openaclnn_listen_to_work(ListenerSlot::activities, subscribed && enabled != 0 ? record : nullptr);
}

template <class F>
msptiResult with_activities(F f) noexcept {
  try {
    Activities& own = Activities::get();
    std::unique_lock lock(own.mutex);
    return f(own, lock);
  } catch (const std::exception&) {
    return MSPTI_ERROR_INNER;
  }
}

bool is_kind(msptiActivityKind kind) {
  return kind > MSPTI_ACTIVITY_KIND_INVALID && kind < MSPTI_ACTIVITY_KIND_COUNT;
}

// Nanoseconds to add to a steady time for the wall clock.
int64_t wall_clock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - steady_nanoseconds();
}

constexpr size_t kLargest = sizeof(msptiActivityExternalCorrelation) + sizeof(msptiActivityKernel);

// Returns the bytes written, at most kLargest.
size_t write_records(const Activities& own, const Activity& activity, uint64_t correlation,
                     int64_t shift, uint8_t* to) {
  uint8_t* const begin = to;
  const auto put = [&](const auto& record) {
    std::memcpy(to, &record, sizeof record);
    to += sizeof record;
  };
  const auto time = [=](int64_t steady) { return static_cast<uint64_t>(steady + shift); };
  const Submission& from = activity.submission;
  if (own.wants(MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) && from.external_kind != 0) {
    put(msptiActivityExternalCorrelation{MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                         from.external_kind, from.external_id, correlation});
  }
  if (own.wants(MSPTI_ACTIVITY_KIND_KERNEL)) {
    put(msptiActivityKernel{
        MSPTI_ACTIVITY_KIND_KERNEL,
        time(activity.begin),
        time(activity.end),
        {static_cast<uint32_t>(activity.device), static_cast<uint32_t>(activity.stream)},
        correlation,
        "AI_CPU",
        activity.name});
  }
  return static_cast<size_t>(to - begin);
}

struct External {
  uint32_t kind;
  uint64_t id;
};
thread_local std::vector<External> externals;

void show_external() {
  const External own = externals.empty() ? External{0, 0} : externals.back();
  openaclnn_set_external_id(own.kind, own.id);
}

}  // namespace

msptiResult msptiSubscribe(msptiSubscriberHandle* subscriber, msptiCallbackFunc, void*) {
  if (subscriber == nullptr) return MSPTI_ERROR_INVALID_PARAMETER;
  return with_activities([&](Activities& own, auto&) {
    if (own.subscribed) return MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    own.subscribed = true;
    *subscriber = &own;
    own.listen();
    return MSPTI_SUCCESS;
  });
}

msptiResult msptiUnsubscribe(msptiSubscriberHandle subscriber) {
  return with_activities([&](Activities& own, auto&) {
    if (!own.subscribed || subscriber != &own) return MSPTI_ERROR_INVALID_PARAMETER;
    own.subscribed = false;
    own.enabled = 0;
    own.pending.clear();
    own.listen();
    return MSPTI_SUCCESS;
  });
}

msptiResult msptiActivityRegisterCallbacks(msptiBuffersCallbackRequestFunc funcBufferRequested,
                                           msptiBuffersCallbackCompleteFunc funcBufferCompleted) {
  if (funcBufferRequested == nullptr || funcBufferCompleted == nullptr)
    return MSPTI_ERROR_INVALID_PARAMETER;
  return with_activities([&](Activities& own, auto&) {
    own.request = funcBufferRequested;
    own.complete = funcBufferCompleted;
    return MSPTI_SUCCESS;
  });
}

msptiResult msptiActivityEnable(msptiActivityKind kind) {
  if (!is_kind(kind)) return MSPTI_ERROR_INVALID_PARAMETER;
  return with_activities([&](Activities& own, auto&) {
    own.enabled |= 1u << kind;
    own.listen();
    return MSPTI_SUCCESS;
  });
}

msptiResult msptiActivityDisable(msptiActivityKind kind) {
  if (!is_kind(kind)) return MSPTI_ERROR_INVALID_PARAMETER;
  return with_activities([&](Activities& own, auto&) {
    own.enabled &= ~(1u << kind);
    if (own.enabled == 0) own.listen();
    return MSPTI_SUCCESS;
  });
}

// The callbacks run without the lock.
msptiResult msptiActivityFlushAll(uint32_t) {
  return with_activities([&](Activities& own, std::unique_lock<std::mutex>& lock) {
    const auto request = own.request;
    const auto complete = own.complete;
    if (request == nullptr) return MSPTI_ERROR_INVALID_PARAMETER;
    std::vector<Activity> flushed;
    flushed.swap(own.pending);
    const int64_t shift = wall_clock();
    for (size_t next = 0; next < flushed.size();) {
      uint8_t* buffer = nullptr;
      size_t size = 0, most = 0;
      lock.unlock();
      request(&buffer, &size, &most);
      lock.lock();
      if (buffer == nullptr || size < kLargest) {
        flushed.erase(flushed.begin(), flushed.begin() + static_cast<std::ptrdiff_t>(next));
        own.pending.insert(own.pending.begin(), flushed.begin(), flushed.end());
        if (buffer != nullptr) {
          lock.unlock();
          complete(buffer, size, 0);
        }
        return MSPTI_ERROR_INNER;
      }
      size_t used = 0;
      for (; next < flushed.size() && size - used >= kLargest; ++next)
        used += write_records(own, flushed[next], ++own.correlations, shift, buffer + used);
      lock.unlock();
      complete(buffer, size, used);
      lock.lock();
    }
    return MSPTI_SUCCESS;
  });
}

// `*record` NULL: the first; else the one after it.
msptiResult msptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                       msptiActivity** record) {
  if (buffer == nullptr || record == nullptr) return MSPTI_ERROR_INVALID_PARAMETER;
  size_t at = 0;
  if (*record != nullptr) {
    auto* previous = reinterpret_cast<uint8_t*>(*record);
    if (previous < buffer || previous >= buffer + validBufferSizeBytes)
      return MSPTI_ERROR_INVALID_PARAMETER;
    at = static_cast<size_t>(previous - buffer);
    switch ((*record)->kind) {
      case MSPTI_ACTIVITY_KIND_KERNEL: at += sizeof(msptiActivityKernel); break;
      case MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        at += sizeof(msptiActivityExternalCorrelation);
        break;
      default: return MSPTI_ERROR_INVALID_PARAMETER;
    }
  }
  if (at >= validBufferSizeBytes) return MSPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<msptiActivity*>(buffer + at);
  return MSPTI_SUCCESS;
}

msptiResult msptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  if (kind == 0 || kind > kMostExternalKind) return MSPTI_ERROR_INVALID_PARAMETER;
  try {
    externals.push_back({kind, id});
  } catch (const std::bad_alloc&) {
    return MSPTI_ERROR_INNER;
  }
  show_external();
  return MSPTI_SUCCESS;
}

// The newest of this kind.
msptiResult msptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* lastId) {
  if (kind == 0 || kind > kMostExternalKind) return MSPTI_ERROR_INVALID_PARAMETER;
  for (size_t i = externals.size(); i-- > 0;) {
    if (externals[i].kind != kind) continue;
    if (lastId != nullptr) *lastId = externals[i].id;
    externals.erase(externals.begin() + static_cast<std::ptrdiff_t>(i));
    show_external();
    return MSPTI_SUCCESS;
  }
  return MSPTI_ERROR_QUEUE_EMPTY;
}

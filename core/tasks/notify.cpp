// SPDX-License-Identifier: Apache-2.0
// Notifications: a flag that one stream sets and one waiting stream consumes. Tasks hold the state,
// so the handle may be destroyed before they run.
#include <atomic>
#include <cstring>
#include <memory>

#include "acl/acl_rt.h"
#include "core/runtime/work_listener.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/support/handles.h"
#include "core/tasks/notify_flag.h"
#include "core/support/observer.h"
#include "core/support/shared_file.h"
#include "core/runtime/stream.h"
#include "core/runtime/task.h"

using namespace openaclnn;

namespace {

constexpr size_t kMaxNotifies = 1 << 16;

struct Notify {
  static constexpr bool kPinned = true;

  uint32_t id;
  std::shared_ptr<NotifyFlag> flag = std::make_shared<NotifyFlag>();

  explicit Notify(uint32_t its_id) : id(its_id) {}
  Notify(uint32_t its_id, std::shared_ptr<SharedFile> file)
      : id(its_id), flag(std::make_shared<NotifyFlag>(std::move(file))) {}
};

HandlePool<Notify>& notifies() {
  return pool_of<Notify>(kMaxNotifies, [] { notifies().forget_pins(); });
}
using PinnedNotify = HandlePool<Notify>::Pin;

Status find_notify(const char* call, aclrtNotify handle, PinnedNotify* notify) {
  if (Status null = not_null(call, "notify", handle, ObjectKind::notify); !null.ok()) return null;
  *notify = PinnedNotify(notifies(), handle);
  if (*notify) return {};
  return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::notify, "notify", handle);
}

struct NotifyRecord {
  static constexpr const char* kCall = "aclrtRecordNotify";
  std::shared_ptr<NotifyFlag> flag;
  aclrtNotify handle;  // for the observer

  void observe(const Stream& stream) const { notify_recorded(handle, &stream); }

  void run() const { flag->set(); }
};

struct NotifyWait {
  static constexpr const char* kCall = "aclrtWaitAndResetNotify";
  std::shared_ptr<NotifyFlag> flag;
  aclrtNotify handle;  // for the observer
  uint32_t seconds;    // 0: for ever

  void observe(const Stream& stream) const { notify_consumes(&stream, handle); }

  void run() const {
    const Work work(kCall);
    Stream* stream = Stream::running_here();
    const auto limit = Deadline::in_milliseconds(seconds == 0 ? -1 : int64_t{seconds} * 1000);
    if (flag->wait(*stream, limit) != Stream::Waited::too_long) return;
    stream->fail_task(ACL_ERROR_RT_TASK_TIMEOUT, Reason::timed_out,
                      "aclrtWaitAndResetNotify timed out after %u s; the work behind it ran anyway",
                      seconds);
  }
};

std::atomic<uint32_t> notifies_made = 0;

template <class... Given>
Status make_notify(const char* call, aclrtNotify* notify, Given... given) {
  if (!current_context()) return no_context(call);
  Notify* own = notifies().create(notifies_made++, given...);
  if (own == nullptr) {
    return fail(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, Reason::no_resource, call,
                "too many live notifies");
  }
  notify_made(call, ObjectKind::notify, own);
  *notify = own;
  return {};
}

Status create_notify(const char* call, aclrtNotify* notify, uint64_t flag) {
  if (Status null = not_null(call, "notify", notify); !null.ok()) return null;
  if (flag > ACL_NOTIFY_DEVICE_USE_ONLY) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "flag must be 0 or 1, but got %llu", static_cast<unsigned long long>(flag));
  }
  return make_notify(call, notify);
}

Status record_notify(const char* call, aclrtNotify handle, aclrtStream stream_handle) {
  PinnedNotify notify;
  if (Status status = find_notify(call, handle, &notify); !status.ok()) return status;
  PinnedStream stream;
  if (Status status = find_working_stream(call, stream_handle, &stream); !status.ok())
    return status;
  auto job = std::make_unique<NotifyRecord>(NotifyRecord{notify->flag, handle});
  observe_job(*stream, *job);
  submit_job(*stream, std::move(job), true);
  return {};
}

Status wait_for_notify(const char* call, aclrtNotify handle, aclrtStream stream_handle,
                       uint32_t seconds) {
  PinnedNotify notify;
  if (Status status = find_notify(call, handle, &notify); !status.ok()) return status;
  PinnedStream stream;
  if (Status status = find_working_stream(call, stream_handle, &stream); !status.ok())
    return status;
  auto job = std::make_unique<NotifyWait>(NotifyWait{notify->flag, handle, seconds});
  observe_job(*stream, *job);
  return hand_over_job(call, *stream, std::move(job));
}

}  // namespace

aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) {
  return guarded_status("aclrtCreateNotify",
                        [&](const char* call) { return create_notify(call, notify, flag); });
}

aclError aclrtDestroyNotify(aclrtNotify notify) {
  constexpr const char* call = "aclrtDestroyNotify";
  PinnedNotify own;
  if (Status status = find_notify(call, notify, &own); !status.ok()) return status.code();
  own.release();
  notify_ending(call, ObjectKind::notify, notify);
  notifies().destroy(notify);
  return ACL_SUCCESS;
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  return guarded_status("aclrtRecordNotify",
                        [&](const char* call) { return record_notify(call, notify, stream); });
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) {
  return guarded_status("aclrtWaitAndResetNotify", [&](const char* call) {
    return wait_for_notify(call, notify, stream, timeout);
  });
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId) {
  constexpr const char* call = "aclrtGetNotifyId";
  PinnedNotify own;
  Status status = not_null(call, "notifyId", notifyId);
  if (status.ok()) status = find_notify(call, notify, &own);
  if (status.ok()) *notifyId = own->id;
  return status.code();
}

aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num) {
  constexpr const char* call = "aclrtNotifyBatchReset";
  Status status = not_null(call, "notifies", notifies);
  if (status.ok() && num == 0) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "num must be at least 1");
  }
  for (size_t i = 0; i < num && status.ok(); ++i) {  // all alive, or none is reset
    PinnedNotify own;
    status = find_notify(call, notifies[i], &own);
  }
  for (size_t i = 0; i < num && status.ok(); ++i) {
    PinnedNotify own;
    if (find_notify(call, notifies[i], &own).ok()) own->flag->clear();
  }
  return status.code();
}

// ---- notifications of other processes ----

aclError aclrtNotifyGetExportKey(aclrtNotify notify, char* key, size_t len, uint64_t flags) {
  return guarded_status("aclrtNotifyGetExportKey", [&](const char* call) {
    constexpr uint64_t kAny = ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION;
    PinnedNotify own;
    std::shared_ptr<SharedFile> file;
    Status status = find_notify(call, notify, &own);
    if (status.ok()) status = check_export(call, key, len, flags, kAny);
    if (status.ok()) status = own->flag->share(call, flags == kAny, &file);
    if (status.ok()) std::strcpy(key, file->key().c_str());
    return status;
  });
}

aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t* pid, size_t num) {
  constexpr const char* call = "aclrtNotifySetImportPid";
  PinnedNotify own;
  Status status = find_notify(call, notify, &own);
  if (!status.ok()) return status.code();
  const std::shared_ptr<SharedFile> file = own->flag->file();
  if (file == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::call_missing, call,
                "notify was not exported; call aclrtNotifyGetExportKey first")
        .code();
  }
  return list_processes(call, *file, pid, num).code();
}

aclError aclrtNotifyImportByKey(aclrtNotify* notify, const char* key, uint64_t flags) {
  return guarded_status("aclrtNotifyImportByKey", [&](const char* call) {
    std::shared_ptr<SharedFile> file;
    Status status = not_null(call, "notify", notify);
    if (status.ok() && (flags & ~ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS) != 0) {
      status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                    "flags must be 0 or 2, but got %llu", static_cast<unsigned long long>(flags));
    }
    if (status.ok()) status = SharedFile::open(call, SharedKind::notify, key, &file);
    return status.ok() ? make_notify(call, notify, file) : status;
  });
}

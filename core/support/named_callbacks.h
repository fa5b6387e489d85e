// SPDX-License-Identifier: Apache-2.0
// Callbacks that a program registers under a name, for states of streams and aborts of devices.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"

namespace openaclnn {

template <class Function>
class NamedCallbacks {
 public:
  using Entry = std::pair<Function, void*>;  // and the program's argument

  NamedCallbacks() { hold_across_fork(mutex_); }

  static NamedCallbacks& get() {
    static constinit NoDestructor<NamedCallbacks> callbacks;
    return callbacks.get();
  }

  // A function of NULL takes the name back.
  Status set(const char* call, const char* name, Function function, void* argument) {
    Status status = not_null(call, "regName", name);
    if (!status.ok()) return status;
    if (*name == '\0') {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "regName must not be empty");
    }
    std::lock_guard lock(mutex_);
    if (function == nullptr) {
      if (entries_.erase(name) > 0) return {};
      return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::call_missing, call,
                  "no callback is registered as \"%s\"", name);
    }
    if (!entries_.emplace(name, Entry{function, argument}).second) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::already_done, call,
                  "a callback is already registered as \"%s\"; end it with callback NULL first",
                  name);
    }
    any_ = true;
    return {};
  }

  // Calls f(function, argument) for each, without the lock.
  template <class F>
  void for_each(F f) {
    if (!any_) [[likely]]
      return;
    std::vector<Entry> entries;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [name, entry] : entries_) entries.push_back(entry);
    }
    for (const auto& [function, argument] : entries) f(function, argument);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::atomic<bool> any_ = false;  // ever
};

using StreamStateCallbacks = NamedCallbacks<aclrtStreamStateCallback>;
using DeviceAbortCallbacks = NamedCallbacks<aclrtDeviceTaskAbortCallback>;

// On the thread that creates or destroys the stream.
inline void notify_stream_state(aclrtStream stream, aclrtStreamState state) {
  StreamStateCallbacks::get().for_each([&](aclrtStreamStateCallback function, void* argument) {
    function(stream, state, argument);
  });
}

}  // namespace openaclnn

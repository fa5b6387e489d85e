// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/check.h"
#include "core/runtime/event.h"
#include "core/runtime/observer.h"

namespace openaclnn {

// f(Event&) under the lock of events, or a failure.
template <class F>
Status with_event(const char* call, const void* handle, F f, const char* argument = "event") {
  if (Status status = not_null(call, argument, handle); !status.ok()) return status;
  {
    std::lock_guard lock(event_mutex());
    Event* event = events().find(handle);
    if (event != nullptr && !event->destroyed) return f(*event);
  }
  tell_refused(call, kEventThing, argument, handle);
  return fail(ACL_ERROR_RT_INVALID_HANDLE,
              "%s: %s must be alive, but %p was destroyed or never created", call, argument,
              handle);
}

}  // namespace openaclnn

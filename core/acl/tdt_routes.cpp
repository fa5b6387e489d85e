// SPDX-License-Identifier: Apache-2.0
// Routes: a thread for each takes messages from the source and gives them to the destination.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "core/acl/description.h"
#include "core/acl/tdt_forwarding.h"
#include "core/acl/tdt_queue.h"
#include "core/support/api_guard.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"

struct acltdtQueueRoute {
  uint32_t source = 0, destination = 0;
  int32_t status = ACL_TDT_QUEUE_ROUTE_UNBIND;
};

struct acltdtQueueRouteList {
  std::vector<acltdtQueueRoute> routes;
};

struct acltdtQueueRouteQueryInfo {
  int32_t mode = ACL_TDT_QUEUE_ROUTE_QUERY_SRC;
  uint32_t source = 0, destination = 0;
};

using namespace openaclnn;

namespace {

HandlePool<acltdtQueueRoute>& routes() { return pool_of<acltdtQueueRoute>(1 << 12); }
HandlePool<acltdtQueueRouteList>& lists() { return pool_of<acltdtQueueRouteList>(1 << 12); }
HandlePool<acltdtQueueRouteQueryInfo>& queries() {
  return pool_of<acltdtQueueRouteQueryInfo>(1 << 12);
}

struct Bound {
  Bound() {
    hold_across_fork(mutex);
    // The threads do not exist in a child.
    after_fork_in_child([] { new (&get().all) std::vector<std::shared_ptr<Forwarding>>; });
  }

  static Bound& get() {
    static constinit NoDestructor<Bound> bound;
    return bound.get();
  }

  // Whether `to` can be reached from `from` along routes.
  bool reaches(uint32_t from, uint32_t to) const {
    if (from == to) return true;
    return std::any_of(all.begin(), all.end(), [&](const auto& own) {
      return own->source() == from && reaches(own->destination(), to);
    });
  }

  std::mutex mutex;
  std::vector<std::shared_ptr<Forwarding>> all;
};

template <class T>
T* create_route_object(const char* call, HandlePool<T>& pool, T value = {}) {
  T* made = pool.create(std::move(value));
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, call, "too many live objects").null();
}

Status check_four(const char* call, size_t length) {
  if (length == sizeof(uint32_t)) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "len must be 4, but got %zu",
              length);
}

Status bind(const char* call, acltdtQueueRoute& route) {
  std::shared_ptr<TdtQueue> from, to;
  Status status = find_queue(call, "a source", route.source, &from);
  if (status.ok()) status = find_queue(call, "a destination", route.destination, &to);
  if (!status.ok()) return status;
  Bound& bound = Bound::get();
  std::lock_guard lock(bound.mutex);
  const auto same = [&](const auto& own) { return own->is(route.source, route.destination); };
  if (std::none_of(bound.all.begin(), bound.all.end(), same)) {
    if (bound.reaches(route.destination, route.source)) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "a route from queue %u to queue %u would close a circle", route.source,
                  route.destination);
    }
    bound.all.push_back(std::make_shared<Forwarding>(route.source, route.destination, from, to));
  }
  route.status = ACL_TDT_QUEUE_ROUTE_BIND;
  return {};
}

template <class F>
void unbind_if(F ends) {
  std::vector<std::shared_ptr<Forwarding>> ended;  // joined without the lock
  Bound& bound = Bound::get();
  std::lock_guard lock(bound.mutex);
  const auto first = std::stable_partition(bound.all.begin(), bound.all.end(),
                                           [&](const auto& own) { return !ends(*own); });
  ended.assign(first, bound.all.end());
  bound.all.erase(first, bound.all.end());
}

// Calls change(route) for all routes of a list, and returns the first failure.
template <class F>
aclError for_routes(const char* call, acltdtQueueRouteList* handle, F change) {
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HandlePool<acltdtQueueRouteList>::Hold list;
    Status status = find_object(lists(), call, "qRouteList", handle, &list);
    if (!status.ok()) return status.code();
    for (acltdtQueueRoute& route : list->routes) {
      const Status changed = change(route);
      if (status.ok()) status = changed;
    }
    return status.code();
  });
}

}  // namespace

namespace openaclnn {

void unbind_queue(uint32_t number) {
  unbind_if(
      [=](const Forwarding& own) { return own.source() == number || own.destination() == number; });
}

}  // namespace openaclnn

acltdtQueueRoute* acltdtCreateQueueRoute(uint32_t srcId, uint32_t dstId) {
  return create_route_object("acltdtCreateQueueRoute", routes(),
                             acltdtQueueRoute{srcId, dstId, ACL_TDT_QUEUE_ROUTE_UNBIND});
}

aclError acltdtDestroyQueueRoute(const acltdtQueueRoute* route) {
  return end_object(routes(), "acltdtDestroyQueueRoute", "route", route);
}

aclError acltdtGetQueueRouteParam(const acltdtQueueRoute* route, acltdtQueueRouteParamType type,
                                  size_t len, size_t* paramRetSize, void* param) {
  constexpr const char* call = "acltdtGetQueueRouteParam";
  HandlePool<acltdtQueueRoute>::Hold found;
  Status status = find_object(routes(), call, "route", route, &found);
  if (status.ok()) status = check_four(call, len);
  if (status.ok()) status = not_null(call, "paramRetSize", paramRetSize);
  if (status.ok()) status = not_null(call, "param", param);
  if (!status.ok()) return status.code();
  const void* const values[] = {&found->source, &found->destination, &found->status};
  const int which = static_cast<int>(type);
  if (which < ACL_TDT_QUEUE_ROUTE_SRC_UINT32 || which > ACL_TDT_QUEUE_ROUTE_STATUS_INT32) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "type must be in [0, 2], but got %d", which)
        .code();
  }
  std::memcpy(param, values[which], sizeof(uint32_t));
  *paramRetSize = sizeof(uint32_t);
  return ACL_SUCCESS;
}

acltdtQueueRouteList* acltdtCreateQueueRouteList(void) {
  return create_route_object("acltdtCreateQueueRouteList", lists());
}

aclError acltdtDestroyQueueRouteList(const acltdtQueueRouteList* routeList) {
  return end_object(lists(), "acltdtDestroyQueueRouteList", "routeList", routeList);
}

aclError acltdtAddQueueRoute(acltdtQueueRouteList* routeList, const acltdtQueueRoute* route) {
  constexpr const char* call = "acltdtAddQueueRoute";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HandlePool<acltdtQueueRouteList>::Hold list;
    HandlePool<acltdtQueueRoute>::Hold found;
    Status status = find_object(lists(), call, "routeList", routeList, &list);
    if (status.ok()) status = find_object(routes(), call, "route", route, &found);
    if (status.ok()) list->routes.push_back(*found);
    return status.code();
  });
}

aclError acltdtGetQueueRoute(const acltdtQueueRouteList* routeList, size_t index,
                             acltdtQueueRoute* route) {
  constexpr const char* call = "acltdtGetQueueRoute";
  HandlePool<acltdtQueueRouteList>::Hold list;
  HandlePool<acltdtQueueRoute>::Hold found;
  Status status = find_object(lists(), call, "routeList", routeList, &list);
  if (status.ok()) status = find_object(routes(), call, "route", route, &found);
  if (status.ok() && index >= list->routes.size()) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "index must be in [0, %zu), but got %zu", list->routes.size(), index);
  }
  if (status.ok()) *found = list->routes[index];
  return status.code();
}

size_t acltdtGetQueueRouteNum(const acltdtQueueRouteList* routeList) {
  HandlePool<acltdtQueueRouteList>::Hold list;
  const Status status =
      find_object(lists(), "acltdtGetQueueRouteNum", "routeList", routeList, &list);
  if (status.ok()) return list->routes.size();
  (void)status.code();
  return 0;
}

aclError acltdtBindQueueRoutes(acltdtQueueRouteList* qRouteList) {
  constexpr const char* call = "acltdtBindQueueRoutes";
  return for_routes(call, qRouteList, [&](acltdtQueueRoute& route) { return bind(call, route); });
}

aclError acltdtUnbindQueueRoutes(acltdtQueueRouteList* qRouteList) {
  return for_routes("acltdtUnbindQueueRoutes", qRouteList, [](acltdtQueueRoute& route) {
    unbind_if([&](const Forwarding& own) { return own.is(route.source, route.destination); });
    route.status = ACL_TDT_QUEUE_ROUTE_UNBIND;
    return Status();
  });
}

// ---- queries ----

acltdtQueueRouteQueryInfo* acltdtCreateQueueRouteQueryInfo(void) {
  return create_route_object("acltdtCreateQueueRouteQueryInfo", queries());
}

aclError acltdtDestroyQueueRouteQueryInfo(const acltdtQueueRouteQueryInfo* info) {
  return end_object(queries(), "acltdtDestroyQueueRouteQueryInfo", "info", info);
}

aclError acltdtSetQueueRouteQueryInfo(acltdtQueueRouteQueryInfo* param,
                                      acltdtQueueRouteQueryInfoParamType type, size_t len,
                                      const void* value) {
  constexpr const char* call = "acltdtSetQueueRouteQueryInfo";
  HandlePool<acltdtQueueRouteQueryInfo>::Hold found;
  Status status = find_object(queries(), call, "param", param, &found);
  if (status.ok()) status = check_four(call, len);
  if (status.ok()) status = not_null(call, "value", value);
  if (!status.ok()) return status.code();
  void* const places[] = {&found->mode, &found->source, &found->destination};
  const int which = static_cast<int>(type);
  if (which < ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM ||
      which > ACL_TDT_QUEUE_ROUTE_QUERY_DST_ID_UINT32) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "type must be in [0, 2], but got %d", which)
        .code();
  }
  std::memcpy(places[which], value, sizeof(uint32_t));
  return ACL_SUCCESS;
}

aclError acltdtQueryQueueRoutes(const acltdtQueueRouteQueryInfo* queryInfo,
                                acltdtQueueRouteList* qRouteList) {
  constexpr const char* call = "acltdtQueryQueueRoutes";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HandlePool<acltdtQueueRouteQueryInfo>::Hold query;
    HandlePool<acltdtQueueRouteList>::Hold list;
    Status status = find_object(queries(), call, "queryInfo", queryInfo, &query);
    if (status.ok()) status = find_object(lists(), call, "qRouteList", qRouteList, &list);
    const bool abnormal = status.ok() && query->mode == ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL;
    if (status.ok() && !abnormal &&
        (query->mode < 0 || query->mode > ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST)) {
      status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                    "the mode must be in [0, 2] or 100, but got %d", query->mode);
    }
    if (!status.ok()) return status.code();
    Bound& bound = Bound::get();
    std::lock_guard lock(bound.mutex);
    list->routes.clear();
    for (const auto& own : bound.all) {
      const bool from = own->source() == query->source;
      const bool to = own->destination() == query->destination;
      const bool wanted = query->mode == ACL_TDT_QUEUE_ROUTE_QUERY_SRC   ? from
                          : query->mode == ACL_TDT_QUEUE_ROUTE_QUERY_DST ? to
                                                                         : from && to;
      if (wanted && !abnormal)
        list->routes.push_back({own->source(), own->destination(), ACL_TDT_QUEUE_ROUTE_BIND});
    }
    return ACL_SUCCESS;
  });
}

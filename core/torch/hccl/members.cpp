// SPDX-License-Identifier: Apache-2.0
#include "core/torch/hccl/members.h"

#include <mutex>
#include <vector>

#include "core/support/fork.h"
#include "core/support/no_destructor.h"

namespace openaclnn::hccl {
namespace {

// The connections for operators.
struct Lazy {
  std::mutex mutex;
  Connect connect;
  std::shared_ptr<Communicator> made;

  std::shared_ptr<Communicator> get() {
    const std::lock_guard lock(mutex);
    if (made == nullptr) made = connect();
    return made;
  }
};

struct Entry {
  std::weak_ptr<Communicator> own;
  int32_t device;
  std::shared_ptr<Lazy> lazy;
};

// A connection closes, and a communicator ends, only after this lock.
std::mutex& entries_mutex() {
  static constinit NoDestructor<ForkHeldMutex> held;
  return held.get().mutex;
}

std::vector<Entry>& entries() {
  static constinit NoDestructor<std::vector<Entry>> all;
  return all.get();
}

}  // namespace

void keep_for_operators(const std::shared_ptr<Communicator>& own, int32_t device, Connect connect) {
  auto lazy = std::make_shared<Lazy>();
  lazy->connect = std::move(connect);
  const std::lock_guard lock(entries_mutex());
  entries().push_back({own, device, std::move(lazy)});
}

void forget_ended() {
  std::vector<Entry> ended, alive;
  const std::lock_guard lock(entries_mutex());
  for (Entry& entry : entries()) (entry.own.expired() ? ended : alive).push_back(std::move(entry));
  entries() = std::move(alive);
}

Member member_of(const std::string& name, int32_t device) {
  std::vector<Entry> all;
  {
    const std::lock_guard lock(entries_mutex());
    all = entries();
  }
  std::shared_ptr<Communicator> found;
  std::shared_ptr<Lazy> lazy;
  bool here = false;
  for (const Entry& entry : all) {
    auto own = entry.own.lock();
    if (own == nullptr || own->name != name || (here && entry.device != device)) continue;
    here = entry.device == device;
    found = std::move(own);
    lazy = entry.lazy;
  }
  if (found == nullptr)
    throw Failure(kParameter,
                  "must be the name of a communicator of this process "
                  "(HcclGetCommName), but is \"" +
                      name + "\"");
  return {found->rank, found->ranks, [lazy] { return lazy->get(); }};
}

}  // namespace openaclnn::hccl

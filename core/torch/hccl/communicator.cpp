// SPDX-License-Identifier: Apache-2.0
// Rendezvous: ranks find each other in a store of rank 0, whose address is the root info.
#include <c10/util/Exception.h>

#include <map>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/support/no_destructor.h"
#include "core/torch/hccl/address.h"
#include "core/torch/hccl/gloo.h"
#include "core/torch/hccl/members.h"

namespace openaclnn::hccl {
namespace {

using std::chrono::seconds;

bool has(const std::string& text, const char* word) { return text.find(word) != text.npos; }

// One store server for all communicators of which this process is rank 0.
const c10d::TCPStore& server(const Timeouts& timeouts) {
  static constinit NoDestructor<c10::intrusive_ptr<c10d::TCPStore>> store;
  return *store.get([&] {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    options.timeout = seconds(timeouts.connect);
    return c10::make_intrusive<c10d::TCPStore>(own_address(), options);
  });
}

// Each has a thread, so communicators share them.
std::shared_ptr<gloo::transport::Device> device_at(const std::string& address) {
  static constinit NoDestructor<std::mutex> mutex;
  static constinit NoDestructor<std::map<std::string, std::shared_ptr<gloo::transport::Device>>>
      devices;
  const std::lock_guard lock(mutex.get());
  auto& found = devices.get()[address];
  if (found == nullptr) found = Gloo::createDeviceForHostname(address);
  return found;
}

std::string present(uint32_t rank) { return "present " + std::to_string(rank); }

// gloo waits for the longer timeout; missing ranks are found here.
void await_all(c10d::Store& store, uint32_t rank, uint32_t ranks, int64_t limit) {
  store.set(present(rank), std::vector<uint8_t>{1});
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < ranks; ++i) keys.push_back(present(i));
  try {
    store.wait(keys, seconds(limit));
    return;
  } catch (const std::exception& error) {
    std::string missing;
    uint32_t count = 0;
    for (uint32_t i = 0; i < ranks; ++i) {
      if (store.check({present(i)})) continue;
      missing += (count++ == 0 ? "" : ", ") + std::to_string(i);
    }
    if (count == 0) throw Failure(kConnect, first_line(error));
    throw Failure(kTimeout, "timed out after HCCL_CONNECT_TIMEOUT = " + std::to_string(limit) +
                                " s: rank " + missing + " of " + std::to_string(ranks) +
                                (count == 1 ? " has" : " have") + " not joined");
  }
}

struct GlooEngine final : Engine {
  std::string root_info(const Timeouts& timeouts) override {
    static std::atomic<uint64_t> count = 0;
    const c10d::TCPStore& store = server(timeouts);
    return "openaclnn " + store.getHost() + " " + std::to_string(store.getPort()) + " " +
           std::to_string(count++);
  }

  std::shared_ptr<Communicator> join(const std::string& root_info, const std::string& name,
                                     uint32_t rank, uint32_t ranks, int32_t device,
                                     const Timeouts& timeouts) override {
    char host[128], id[64];
    unsigned port = 0;
    if (sscanf(root_info.c_str(), "openaclnn %127s %u %63s", host, &port, id) != 3)
      throw Failure(kParameter, "rootInfo must come from HcclGetRootInfo");
    try {
      c10d::TCPStoreOptions options;
      options.port = static_cast<uint16_t>(port);
      options.waitWorkers = false;
      options.timeout = seconds(timeouts.connect);
      auto server = c10::make_intrusive<c10d::TCPStore>(host, options);
      auto store = c10::make_intrusive<c10d::PrefixStore>(id, std::move(server));
      await_all(*store, rank, ranks, timeouts.connect);
      auto group = Gloo::Options::create(seconds(timeouts.execution));
      group->devices.push_back(device_at(address_towards(host, options.port)));
      group->threads = 1;
      const std::string unique = std::string(host) + "_" + std::to_string(port) + "_" + id;
      const auto connect = [rank, ranks, group](c10::intrusive_ptr<c10d::Store> its_store) {
        return c10::make_intrusive<Gloo>(std::move(its_store), static_cast<int>(rank),
                                         static_cast<int>(ranks), group);
      };
      const std::shared_ptr<GlooCommunicator> own(
          new GlooCommunicator(name.empty() ? unique : name, rank, ranks, timeouts.execution,
                               connect(store)),
          [](GlooCommunicator* ended) {
            delete ended;
            forget_ended();  // the connections of operators
          });
      own->root_info = root_info;
      // Operators have separate connections: their order among collectives that other streams
      // perform differs between ranks.
      keep_for_operators(
          own, device,
          [own_name = own->name, rank, ranks, store, connect, limit = timeouts.execution] {
            return std::make_shared<GlooCommunicator>(
                own_name, rank, ranks, limit,
                connect(c10::make_intrusive<c10d::PrefixStore>("operators", store)));
          });
      return own;
    } catch (const Failure&) {
      throw;
    } catch (const std::exception& error) {
      throw Failure(kConnect, "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                                  " cannot reach the others: " + first_line(error));
    }
  }
};

}  // namespace

// Removes the source location that gloo and c10d add to the message.
std::string first_line(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  std::string text = own != nullptr ? own->what_without_backtrace() : error.what();
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.front() == '[' && has(text, "] ")) text.erase(0, text.find("] ") + 2);
  return text.substr(0, text.find(". This "));  // gloo appends guesses
}

void GlooCommunicator::lost(const std::string& text) const {
  if (has(text, "imed out") || has(text, "imeout"))
    throw Failure(kTimeout, "timed out after HCCL_EXEC_TIMEOUT = " + std::to_string(limit_) +
                                " s: a rank did not take part");
  const bool remote = has(text, "onnection") || has(text, "eer") || has(text, "ocket");
  throw Failure(remote ? kRemote : kInternal,
                remote ? "another rank ended or failed: " + text : text);
}

void GlooCommunicator::perform(const Collective& collective) {
  try {
    if (const auto earlier = failure())
      throw Failure(earlier->code, std::string("an earlier call failed: ") + earlier->what());
    try {
      run(collective);
    } catch (const Failure&) {
      throw;
    } catch (const std::exception& error) {
      lost(first_line(error));
    }
  } catch (const Failure& failure) {
    const std::lock_guard lock(failed_);
    if (!failure_) failure_ = failure;
    throw;
  }
}

void GlooCommunicator::flush() {
  if (const std::string failure = sends_.flush(); !failure.empty()) lost(failure);
}

std::optional<Failure> GlooCommunicator::failure() {
  const std::lock_guard lock(failed_);
  if (const std::string text = failure_ ? "" : sends_.failure(); !text.empty()) {
    try {
      lost(text);
    } catch (const Failure& found) {
      failure_ = found;
    }
  }
  return failure_;
}

Sends::~Sends() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Sends::add(Work work, Tensor data) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(work), std::move(data)});
  if (!thread_.joinable()) thread_ = std::thread([this] { this->work(); });
  changed_.notify_all();
}

std::string Sends::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty(); });
  return failure_;
}

std::string Sends::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Sends::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Send& oldest = waiting_.front();  // stays where it is while others are added
    lock.unlock();
    std::string failure;
    try {
      oldest.work->wait();
    } catch (const std::exception& error) {
      failure = first_line(error);
    }
    lock.lock();
    if (failure_.empty()) failure_ = failure;
    waiting_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace openaclnn::hccl

extern "C" __attribute__((visibility("default"))) openaclnn::hccl::Engine* openaclnn_hccl_engine() {
  static constinit openaclnn::NoDestructor<openaclnn::hccl::GlooEngine> engine;
  return &engine.get();
}

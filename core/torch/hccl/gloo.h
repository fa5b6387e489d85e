// SPDX-License-Identifier: Apache-2.0
// A communicator on c10d's ProcessGroupGloo: the ranks' CPU tensors over the same memory.
#pragma once

#define USE_C10D_GLOO
#include <ATen/ATen.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "core/hccl/engine.h"

namespace openaclnn::hccl {

using at::Tensor;
using Work = c10::intrusive_ptr<c10d::Work>;

// ProcessGroupGloo runs work on its threads. The stream of a collective has a thread already, and a
// switch costs 30 to 100 us, so all_reduce runs on the stream's thread.
class Gloo : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;
  // Work for run(), not queued. Calls must have the same order on all ranks, among all collectives:
  // each takes a tag.
  c10::intrusive_ptr<AsyncWork> prepare_all_reduce(Tensor& values, c10d::ReduceOp operation);
};

// Unawaited sends: gloo delivers when the other side receives. A thread waits for them in order, to
// notice failures and free their memory.
class Sends {
 public:
  ~Sends();
  void add(Work work, Tensor data);
  std::string flush();    // the first failure; "": all were received
  std::string failure();  // the same, so far

 private:
  void work();

  struct Send {
    Work work;
    Tensor data;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Send> waiting_;
  std::string failure_;
  bool ends_ = false;
  std::thread thread_;
};

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(std::string name, uint32_t rank, uint32_t ranks, int64_t limit,
                   c10::intrusive_ptr<Gloo> group)
      : Communicator(std::move(name), rank, ranks), limit_(limit), group_(std::move(group)) {}

  void perform(const Collective& collective) override;
  void flush() override;
  std::optional<Failure> failure() override;

 private:
  // Waits for the work that give() hands to the group.
  template <class F>
  void finish(F give) {
    Work work;
    {
      const std::lock_guard lock(order_);
      work = give();
    }
    work->wait();
  }
  void run(const Collective& collective);
  void agree(const Collective& collective);
  void reduce(Tensor& values, int32_t operation);
  void exchange_with_itself(const std::vector<Part>& parts);
  void exchange(const std::vector<Part>& parts, bool eager);
  [[noreturn]] void lost(const std::string& text) const;

  const int64_t limit_;  // seconds for a call
  const c10::intrusive_ptr<Gloo> group_;
  std::mutex order_;  // work is given to the group by one thread at a time
  std::mutex failed_;
  std::optional<Failure> failure_;  // the first; ranks are out of step after it
  Sends sends_;
};

std::string first_line(const std::exception& error);

}  // namespace openaclnn::hccl

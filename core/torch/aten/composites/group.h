// SPDX-License-Identifier: Apache-2.0
// The ranks of the communicator that an operator names, and what they do together on tensors. In
// phase 1 (no data) only shapes are made. Calls of one group have the same order on all ranks.
#pragma once

#include <array>

#include "core/runtime/stream_library.h"
#include "core/torch/aten/composites/quantised.h"
#include "core/torch/hccl/members.h"

namespace openaclnn::aten {

// Operators, for agree().
enum Joined : int64_t {
  kGatherMatmul = 1,
  kReduceScatter,
  kAllReduce,
  kAllToAllMatmul,
  kMatmulAllToAll,
  kDispatch,
  kCombine,
  kAllToAllGrouped,
  kGroupedAllToAll
};

inline int64_t number_of(at::ScalarType dtype) { return static_cast<int64_t>(dtype); }

class Group {
 public:
  explicit Group(const Text& name, const char* parameter = "group")
      : member_(find(name, parameter)), rank(member_.rank), ranks(member_.ranks) {}

 private:
  static hccl::Member find(const Text& name, const char* parameter) {
    try {
      return hccl::member_of(name, openaclnn_device_here());
    } catch (const hccl::Failure& failure) {
      throw Refusal(c10::str(parameter, " ", failure.what()));
    }
  }

  hccl::Member member_;

 public:
  const int64_t rank, ranks;

  // What every rank exchanges first: the operator, sizes, dtypes. As many numbers for all
  // operators, because ranks may be in different ones.
  using Numbers = std::array<int64_t, 8>;

  // Throws on all ranks unless all pass the same numbers: the buffers of one call must agree.
  void agree(const Numbers& numbers, const char* what) const {
    if (ranks == 1) return;
    const at::IntArrayRef mine(numbers);
    const Tensor all = gathered(at::tensor(mine, at::kLong));
    for (int64_t i = 0; i < ranks; ++i) {
      const at::IntArrayRef theirs(all.data_ptr<int64_t>() + i * all.numel() / ranks, mine.size());
      require_shape(theirs == mine, "ranks must pass the same ", what, ", but rank ", i, " passes ",
                    theirs, " and rank ", rank, " ", mine);
    }
  }

  // Throws on all ranks unless it holds on each.
  void require_all(bool holds, const char* words) const {
    const Tensor all = gathered(at::tensor(Ints{holds}, at::kLong));
    require(all.all().item<bool>(), words);
  }

  // x of all ranks, one after the other along dim 0.
  Tensor gathered(const Tensor& x) const {
    if (ranks == 1) return x;
    Ints sizes = x.sizes().vec();
    sizes[0] *= ranks;
    const Tensor own = x.contiguous(), made = at::empty(sizes, x.options());
    if (made.is_meta() || made.numel() == 0) return made;
    perform({.kind = hccl::Collective::Kind::all_gather,
             .call = "all_gather",
             .send = own.data_ptr(),
             .receive = made.data_ptr(),
             .count = own.nbytes(),
             .dtype = kBytes});
    return made;
  }

  // The sum over all ranks, in fp32.
  Tensor sum(const Tensor& x) const {
    if (ranks == 1 || x.is_meta()) return x;
    const Tensor made = x.to(at::kFloat).contiguous().clone();
    if (made.numel() == 0) return made;
    perform({.kind = hccl::Collective::Kind::all_reduce,
             .call = "all_reduce",
             .send = made.data_ptr(),
             .receive = made.data_ptr(),
             .count = static_cast<uint64_t>(made.numel()),
             .dtype = kFloats,
             .operation = 0});
    return made;
  }

  // Rows lie in the order of the ranks they go to, those received in the order of their ranks.
  Tensor exchanged(const Tensor& x, const Ints& sent, const Ints& received) const {
    int64_t total = 0;
    for (const int64_t rows : received) total += rows;
    Ints sizes = x.sizes().vec();
    sizes[0] = total;
    const Tensor own = x.contiguous(), made = at::empty(sizes, x.options());
    if (made.is_meta()) return made;
    if (ranks == 1) return own.slice(0, 0, total);
    const uint64_t width = own.size(0) == 0 ? 0 : own.nbytes() / static_cast<size_t>(own.size(0));
    const uint64_t wide = total == 0 ? 0 : made.nbytes() / static_cast<size_t>(total);
    std::vector<hccl::Part> parts;
    auto* from = static_cast<char*>(own.data_ptr());
    auto* to = static_cast<char*>(made.data_ptr());
    for (size_t i = 0; i < static_cast<size_t>(ranks); ++i) {
      const uint64_t out = static_cast<uint64_t>(sent[i]) * width;
      const uint64_t in = static_cast<uint64_t>(received[i]) * wide;
      parts.push_back({true, from, out, kBytes, static_cast<uint32_t>(i)});
      parts.push_back({false, to, in, kBytes, static_cast<uint32_t>(i)});
      from += out, to += in;
    }
    perform({.kind = hccl::Collective::Kind::exchange, .call = "exchange", .parts = parts});
    return made;
  }

  // The same number of rows to each rank.
  Tensor exchanged(const Tensor& x) const {
    const Ints each(static_cast<size_t>(ranks), x.size(0) / ranks);
    return exchanged(x, each, each);
  }

 private:
  static constexpr int32_t kBytes = 7, kFloats = 4;  // HcclDataType

  void perform(const hccl::Collective& collective) const {
    try {
      member_.connected()->perform(collective);
    } catch (const hccl::Failure& failure) {
      const bool late = failure.code == hccl::kTimeout;
      throw Refusal(failure.what(), late ? Reason::timed_out : Reason::unreachable,
                    ACLNN_ERR_INNER);
    }
  }
};

}  // namespace openaclnn::aten

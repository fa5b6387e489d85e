// SPDX-License-Identifier: Apache-2.0
// Tokens to the ranks of their experts (dispatch) and back (combine). Ranks 0 to S - 1 have shared
// experts, rank S + r the experts from r L on. A rank receives rows in the order (expert, source
// rank, token, choice).
#pragma once

#include "core/torch/aten/composites/rank_counts.h"

namespace openaclnn::aten {

// A limit of this library, for its tables of counts (ranks x experts); ids of experts are INT32.
constexpr int64_t kMostExperts = 1 << 16, kMostUnowned = INT32_MAX;

// The attributes that all versions have.
struct Experts {
  Text name;
  int64_t world, rank, count, tensor_ranks, shard, shared, shared_ranks, global_rows;
  int64_t zero = 0, copy = 0, constant = 0;  // experts after `count` that no rank has

  int64_t local() const { return count / (world - shared_ranks); }
  bool is_shared(int64_t of) const { return of < shared_ranks; }

  Group group() const {
    Group found(name, "groupEp");
    require(world == found.ranks && rank == found.rank, "epWorldSize and epRankId must be those ",
            "of the communicator, ", found.ranks, " and ", found.rank, ", but are ", world, " and ",
            rank);
    require(tensor_ranks <= 1, "tpWorldSize must be 0 or 1, but got ", tensor_ranks);
    require(shard == 0, "expertShardType must be 0, but got ", shard);
    require(global_rows >= 0, "globalBs must be at least 0, but got ", global_rows);
    require(0 <= shared_ranks && shared_ranks < world, "sharedExpertRankNum must be in [0, ", world,
            "), but got ", shared_ranks);
    require(count <= kMostExperts && 0 <= shared && shared <= kMostExperts,
            "moeExpertNum and sharedExpertNum must be at most ", kMostExperts,
            " and not negative, but are ", count, " and ", shared);
    require(count > 0 && count % (world - shared_ranks) == 0, "moeExpertNum must be divisible by ",
            world - shared_ranks, ", the ranks that have experts, but got ", count);
    require(shared_ranks == 0 || (shared > 0 && shared_ranks % shared == 0),
            "sharedExpertNum must divide sharedExpertRankNum, ", shared_ranks, ", but got ",
            shared);
    for (const int64_t number : {zero, copy, constant})
      require(number >= 0 && number <= kMostUnowned,
              "zeroExpertNum, copyExpertNum and constExpertNum must be at least 0 and at most ",
              kMostUnowned, ", but one is ", number);
    return found;
  }
};

// xActiveMask as (tokens, 1) or (tokens, choices).
inline Tensor active_of(const Tensor& mask, int64_t tokens, int64_t choices) {
  if (!has(mask)) return {};
  return mask.to(at::kBool).reshape({tokens, mask.numel() == tokens ? 1 : choices});
}

// A row that goes to an expert. Choice -1 - s is shared expert s.
struct SentRow {
  int64_t token, choice, expert;  // expert: of the rows of `scales`
};

// The rows of one rank in the order (rank, local expert, token, choice), and their counts.
struct Routing {
  std::vector<SentRow> rows;
  Counts counts;

  Routing(const Experts& e, const Tensor& ids, const Tensor& mask)
      : counts{Ints(static_cast<size_t>(e.world * e.local())), e.world, e.local()} {
    const Tensor dense = ids.to(at::kLong).contiguous();
    const auto* id = dense.const_data_ptr<int64_t>();
    const int64_t tokens = ids.size(0), choices = ids.size(1), local = e.local();
    Tensor active = active_of(mask, tokens, choices);
    if (has(mask)) active = active.expand({tokens, choices}).contiguous();
    std::vector<std::vector<SentRow>> to(static_cast<size_t>(e.world * local));
    for (int64_t t = 0; t < tokens; ++t) {
      const bool* on = has(mask) ? active.const_data_ptr<bool>() + t * choices : nullptr;
      const bool any = on == nullptr || std::any_of(on, on + choices, [](bool x) { return x; });
      const int64_t per = e.shared_ranks == 0 ? 0 : e.shared_ranks / e.shared;
      for (int64_t s = 0; any && per > 0 && s < e.shared; ++s)
        to[static_cast<size_t>((s * per + e.rank % per) * local)].push_back({t, -1 - s, s});
      for (int64_t k = 0; k < choices; ++k) {
        const int64_t expert = id[t * choices + k];
        if (expert < 0 || expert >= e.count || (on != nullptr && !on[k])) continue;
        to[static_cast<size_t>(e.shared_ranks * local + expert)].push_back(
            {t, k, e.shared + expert});
      }
    }
    for (size_t i = 0; i < to.size(); ++i) {
      counts.of[i] = static_cast<int64_t>(to[i].size());
      rows.insert(rows.end(), to[i].begin(), to[i].end());
    }
  }

  Tensor column(int64_t SentRow::* field) const {
    Ints numbers;
    for (const SentRow& row : rows) numbers.push_back(row.*field);
    return at::tensor(numbers, at::kLong);
  }
};

inline void check_tokens(const Tensor& x, const char* name, const Tensor& ids, const Tensor& mask,
                         const Tensor& gates) {
  check_real(x, name);
  check_rank(x, name, 2, 3);
  check_rank(ids, "expertIds", 2, 2);
  require(at::isIntegralType(ids.scalar_type(), false), "expertIds must have integers, but is ",
          ids.scalar_type());
  const int64_t tokens = ids.size(0), choices = ids.size(1);
  if (gates.defined()) check_shape(gates, "expertScales", {tokens, choices});
  if (has(mask))
    require_shape(mask.numel() == tokens || mask.numel() == tokens * choices,
                  "xActiveMask must have shape [", tokens, "] or [", tokens, ", ", choices,
                  "], but got ", mask.sizes());
}

// made in so many first rows of out, zeros after them.
inline void put_first(const Out& out, const Tensor& made) {
  const Tensor& to = out.tensor();
  if (!to.defined() || to.numel() == 0) return;
  Ints sizes = made.sizes().vec();
  int64_t width = 1;
  for (const int64_t size : made.sizes().slice(1)) width *= size;
  sizes[0] = to.numel() / std::max<int64_t>(1, width);
  const Tensor all = at::zeros(sizes, made.options());
  const int64_t rows = std::min(sizes[0], made.size(0));
  all.slice(0, 0, rows).copy_(made.slice(0, 0, rows));
  out = all.reshape(to.sizes());
}

// Of each (expert, rank) on this rank the rows up to its last one.
inline Ints ends_of(const Counts& counts, int64_t experts) {
  Ints ends;
  int64_t end = 0;
  for (int64_t e = 0; e < experts; ++e)
    for (int64_t r = 0; r < counts.ranks; ++r) ends.push_back(end += counts.at(r, e));
  return ends;
}

}  // namespace openaclnn::aten

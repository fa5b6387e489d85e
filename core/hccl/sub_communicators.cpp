// SPDX-License-Identifier: Apache-2.0
// Communicators of some ranks of another. They meet in the store of that other one.
#include <algorithm>
#include <cstdio>
#include <functional>

#include "core/hccl/calls.h"
#include "core/hccl/task.h"

namespace openaclnn::hccl {
namespace {

void check_ranks(const Communicator& parent, const std::vector<uint32_t>& ranks, uint32_t own) {
  if (own >= ranks.size())
    throw Failure(kParameter, "subCommRankId must be in [0, rankNum), but got " +
                                  std::to_string(own) + " of " + std::to_string(ranks.size()));
  for (auto rank = ranks.begin(); rank != ranks.end(); ++rank) {
    if (*rank >= parent.ranks || std::find(ranks.begin(), rank, *rank) != rank)
      throw Failure(kParameter, "rankIds must be different ranks below " +
                                    std::to_string(parent.ranks) + ", but has " +
                                    std::to_string(*rank));
  }
  if (ranks[own] != parent.rank)
    throw Failure(kParameter, "rankIds[subCommRankId] must be the rank of this process in comm, " +
                                  std::to_string(parent.rank) + ", but is " +
                                  std::to_string(ranks[own]));
}

}  // namespace

// std::hash of a string is the same in all processes of one build.
std::string Communicator::root_info_of(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const std::string whole = root_info + " " + key + " " + std::to_string(times_[key]++);
  char text[24];
  snprintf(text, sizeof text, "%c%016zx", kSubMark, std::hash<std::string>()(whole));
  return root_info.substr(0, root_info.find(kSubMark, root_info.rfind(' '))) + text;
}

}  // namespace openaclnn::hccl

using namespace openaclnn::hccl;

int32_t HcclCreateSubCommConfig(void** comm, uint32_t rankNum, uint32_t* rankIds,
                                uint64_t subCommId, uint32_t subCommRankId, void* config,
                                void** subComm) {
  return guarded("HcclCreateSubCommConfig", [&] {
    not_null("comm", comm);
    not_null("subComm", subComm);
    *subComm = nullptr;
    const Shared parent = find(*comm);
    const bool outside = subCommRankId == UINT32_MAX || subCommId == UINT32_MAX;
    if (rankIds == nullptr && outside) return;
    not_null("rankIds", rankIds);
    if (rankNum == 0 || rankNum > parent->ranks)
      throw Failure(kParameter, "rankNum must be in [1, " + std::to_string(parent->ranks) +
                                    "], the ranks of comm, but got " + std::to_string(rankNum));
    const std::vector<uint32_t> ranks(rankIds, rankIds + rankNum);
    check_ranks(*parent, ranks, subCommRankId);
    std::string key = std::to_string(subCommId);
    for (const uint32_t rank : ranks) key += " " + std::to_string(rank);
    join_ranks(parent->root_info_of(key), name_in(config), subCommRankId, rankNum, subComm);
  });
}

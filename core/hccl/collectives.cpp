// SPDX-License-Identifier: Apache-2.0
// The collectives, sends and receives of libhccl and libhcomm: checks C arguments and makes a
// Collective of them.
#include <utility>
#include <vector>

#include "core/hccl/calls.h"
#include "core/hccl/task.h"

using namespace openaclnn::hccl;

namespace {

int32_t submit(void* comm, void* stream, const Collective& collective) {
  return guarded(collective.call, [&] { submit(find(comm), collective, stream); });
}

// Sends and receives between HcclGroupStart and HcclGroupEnd, in the order of the calls, in which
// every rank executes them.
struct Group {
  struct Batch {
    void *comm, *stream;
    std::vector<Part> parts;
  };
  int depth = 0;
  std::vector<Batch> batches;

  std::vector<Part>& parts_of(void* comm, void* stream) {
    for (Batch& batch : batches) {
      if (batch.comm == comm && batch.stream == stream) return batch.parts;
    }
    return batches.emplace_back(Batch{comm, stream, {}}).parts;
  }
};
thread_local Group group;

int32_t transfer(const char* call, void* comm, void* stream, const Part& part) {
  return guarded(call, [&] {
    const Shared own = find(comm);
    if (group.depth > 0) return group.parts_of(comm, stream).push_back(part);
    submit(own, {.kind = Collective::Kind::batch, .call = call, .parts = {part}}, stream);
  });
}

// `count` elements from element `first` on.
Part part(bool sends, const void* data, uint64_t first, uint64_t count, int32_t dtype,
          uint32_t peer) {
  if (count == 0) return {sends, nullptr, 0, dtype, peer};
  check_buffer(data, count);
  check_buffer(data, first);
  auto* const bytes = static_cast<char*>(const_cast<void*>(data));
  return {sends, bytes + first * width(dtype), count, dtype, peer};
}

const uint64_t* numbers(const char* name, const void* list) {
  not_null(name, list);
  return static_cast<const uint64_t*>(list);
}

}  // namespace

// ---- collectives ----

using Kind = Collective::Kind;

int32_t HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, int32_t dataType, int32_t op,
                      void* comm, void* stream) {
  return submit(comm, stream,
                {.kind = Kind::all_reduce,
                 .call = "HcclAllReduce",
                 .send = sendBuf,
                 .receive = recvBuf,
                 .count = count,
                 .dtype = dataType,
                 .operation = op});
}

int32_t HcclBroadcast(void* buf, uint64_t count, int32_t dataType, uint32_t root, void* comm,
                      void* stream) {
  return submit(comm, stream,
                {.kind = Kind::broadcast,
                 .call = "HcclBroadcast",
                 .send = buf,
                 .count = count,
                 .dtype = dataType,
                 .root = root});
}

int32_t HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, int32_t dataType,
                      void* comm, void* stream) {
  return submit(comm, stream,
                {.kind = Kind::all_gather,
                 .call = "HcclAllGather",
                 .send = sendBuf,
                 .receive = recvBuf,
                 .count = sendCount,
                 .dtype = dataType});
}

int32_t HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, int32_t dataType,
                          int32_t op, void* comm, void* stream) {
  return submit(comm, stream,
                {.kind = Kind::reduce_scatter,
                 .call = "HcclReduceScatter",
                 .send = sendBuf,
                 .receive = recvBuf,
                 .count = recvCount,
                 .dtype = dataType,
                 .operation = op});
}

int32_t HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls,
                           void* recvBuf, uint64_t recvCount, int32_t dataType, int32_t op,
                           void* comm, void* stream) {
  return guarded("HcclReduceScatterV", [&] {
    const Shared own = find(comm);
    Collective made{.kind = Kind::reduce_scatter,
                    .call = "HcclReduceScatterV",
                    .send = sendBuf,
                    .receive = recvBuf,
                    .count = recvCount,
                    .dtype = dataType,
                    .operation = op};
    const uint64_t* sizes = numbers("sendCounts", sendCounts);
    const uint64_t* starts = numbers("sendDispls", sendDispls);
    made.sizes.assign(sizes, sizes + own->ranks);
    if (made.sizes[own->rank] != recvCount)
      throw Failure(kParameter, "recvCount must be the sendCounts of this rank, " +
                                    std::to_string(made.sizes[own->rank]) + ", but is " +
                                    std::to_string(recvCount));
    made.starts.assign(starts, starts + own->ranks);
    submit(own, std::move(made), stream);
  });
}

int32_t HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, int32_t dataType, int32_t op,
                   uint32_t root, void* comm, void* stream) {
  return submit(comm, stream,
                {.kind = Kind::reduce,
                 .call = "HcclReduce",
                 .send = sendBuf,
                 .receive = recvBuf,
                 .count = count,
                 .dtype = dataType,
                 .operation = op,
                 .root = root});
}

// ---- data from rank to rank ----

// parts(own, list) lists what this rank sends and receives; the call waits for all of it.
template <class F>
int32_t exchange(const char* call, void* comm, void* stream, F parts) {
  return guarded(call, [&] {
    const Shared own = find(comm);
    Collective made{.kind = Kind::exchange, .call = call};
    parts(*own, made.parts);
    submit(own, std::move(made), stream);
  });
}

int32_t HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                       const void* recvDispls, int32_t dataType, void* comm, void* stream) {
  return exchange("HcclAllGatherV", comm, stream, [&](const Communicator& own, auto& parts) {
    const uint64_t* counts = numbers("recvCounts", recvCounts);
    const uint64_t* starts = numbers("recvDispls", recvDispls);
    for (uint32_t i = 0; i < own.ranks; ++i) {
      parts.push_back(part(true, sendBuf, 0, sendCount, dataType, i));
      parts.push_back(part(false, recvBuf, starts[i], counts[i], dataType, i));
    }
  });
}

int32_t HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, int32_t dataType,
                    uint32_t root, void* comm, void* stream) {
  return exchange("HcclScatter", comm, stream, [&](const Communicator& own, auto& parts) {
    for (uint32_t i = 0; own.rank == root && i < own.ranks; ++i) {
      parts.push_back(part(true, sendBuf, i * recvCount, recvCount, dataType, i));
    }
    parts.push_back(part(false, recvBuf, 0, recvCount, dataType, root));
  });
}

int32_t HcclAlltoAll(const void* sendBuf, uint64_t sendCount, int32_t sendType, const void* recvBuf,
                     uint64_t recvCount, int32_t recvType, void* comm, void* stream) {
  return exchange("HcclAlltoAll", comm, stream, [&](const Communicator& own, auto& parts) {
    for (uint32_t i = 0; i < own.ranks; ++i) {
      parts.push_back(part(true, sendBuf, i * sendCount, sendCount, sendType, i));
      parts.push_back(part(false, recvBuf, i * recvCount, recvCount, recvType, i));
    }
  });
}

int32_t HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                      int32_t sendType, const void* recvBuf, const void* recvCounts,
                      const void* rdispls, int32_t recvType, void* comm, void* stream) {
  return exchange("HcclAlltoAllV", comm, stream, [&](const Communicator& own, auto& parts) {
    const uint64_t* sent = numbers("sendCounts", sendCounts);
    const uint64_t* from = numbers("sdispls", sdispls);
    const uint64_t* received = numbers("recvCounts", recvCounts);
    const uint64_t* to = numbers("rdispls", rdispls);
    for (uint32_t i = 0; i < own.ranks; ++i) {
      parts.push_back(part(true, sendBuf, from[i], sent[i], sendType, i));
      parts.push_back(part(false, recvBuf, to[i], received[i], recvType, i));
    }
  });
}

// Row i of the matrix is what rank i sends to each; parts lie in the order of the ranks.
int32_t HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, int32_t sendType,
                       const void* recvBuf, int32_t recvType, void* comm, void* stream) {
  return exchange("HcclAlltoAllVC", comm, stream, [&](const Communicator& own, auto& parts) {
    const uint64_t* counts = numbers("sendCountMatrix", sendCountMatrix);
    uint64_t from = 0, to = 0;
    for (uint32_t i = 0; i < own.ranks; ++i) {
      const uint64_t sent = counts[uint64_t{own.rank} * own.ranks + i];
      const uint64_t received = counts[uint64_t{i} * own.ranks + own.rank];
      parts.push_back(part(true, sendBuf, from, sent, sendType, i));
      parts.push_back(part(false, recvBuf, to, received, recvType, i));
      from += sent, to += received;
    }
  });
}

// A sum of one number each.
int32_t HcclBarrier(void* comm, void* stream) {
  constexpr int32_t kInt32 = 2, kSum = 0;
  return guarded("HcclBarrier", [&] {
    const auto number = std::make_shared<int32_t>(0);
    submit(find(comm),
           {.kind = Kind::all_reduce,
            .call = "HcclBarrier",
            .send = number.get(),
            .receive = number.get(),
            .count = 1,
            .dtype = kInt32,
            .operation = kSum,
            .owned = number},
           stream);
  });
}

int32_t HcclSend(void* sendBuf, uint64_t count, int32_t dataType, uint32_t destRank, void* comm,
                 void* stream) {
  return transfer("HcclSend", comm, stream, {true, sendBuf, count, dataType, destRank});
}

int32_t HcclRecv(void* recvBuf, uint64_t count, int32_t dataType, uint32_t srcRank, void* comm,
                 void* stream) {
  return transfer("HcclRecv", comm, stream, {false, recvBuf, count, dataType, srcRank});
}

int32_t HcclBatchSendRecv(const HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, void* comm,
                          void* stream) {
  return guarded("HcclBatchSendRecv", [&] {
    not_null("sendRecvInfo", sendRecvInfo);
    Collective made{.kind = Kind::batch, .call = "HcclBatchSendRecv"};
    for (uint32_t i = 0; i < itemNum; ++i) {
      const HcclSendRecvItem& item = sendRecvInfo[i];
      made.parts.push_back(
          {item.sendRecvType == 0, item.buf, item.count, item.dataType, item.remoteRank});
    }
    submit(find(comm), std::move(made), stream);
  });
}

int32_t HcclGroupStart(void) {
  ++group.depth;
  return kSuccess;
}

int32_t HcclGroupEnd(void) {
  constexpr const char* call = "HcclGroupEnd";
  return guarded(call, [&] {
    if (group.depth == 0) throw Failure(kParameter, "no group is open; call HcclGroupStart first");
    if (--group.depth > 0) return;
    std::vector<Group::Batch> batches = std::exchange(group.batches, {});
    std::vector<Shared> owners;  // all alive, or nothing is sent
    for (const Group::Batch& batch : batches) owners.push_back(find(batch.comm));
    for (size_t i = 0; i < batches.size(); ++i) {
      submit(owners[i], {.kind = Kind::batch, .call = call, .parts = std::move(batches[i].parts)},
             batches[i].stream);
    }
  });
}

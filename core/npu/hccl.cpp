// SPDX-License-Identifier: Apache-2.0
// The collectives, sends and receives of libhccl and libhcomm: their C arguments as one Collective.
#include <map>
#include <utility>

#include "core/npu/hccl_calls.h"
#include "core/npu/hccl_task.h"

using namespace openaclnn::hccl;

namespace {

int32_t submit(void* comm, void* stream, const Collective& collective) {
  return guarded(collective.call, [&] { submit(find(comm), collective, stream); });
}

// Between HcclGroupStart and HcclGroupEnd sends and receives are gathered.
struct Group {
  int depth = 0;
  std::map<std::pair<void*, void*>, std::vector<Part>> parts;  // of communicator and stream
};
thread_local Group group;

int32_t transfer(const char* call, void* comm, void* stream, const Part& part) {
  if (group.depth == 0) {
    return submit(comm, stream, {.kind = Collective::Kind::batch, .call = call, .parts = {part}});
  }
  return guarded(call, [&] {
    (void)find(comm);
    group.parts[{comm, stream}].push_back(part);
  });
}

size_t width(int32_t dtype) {
  constexpr uint8_t widths[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 16, 0, 1, 1, 1, 1};
  const bool known = dtype >= 0 && dtype < static_cast<int32_t>(sizeof widths);
  if (!known || widths[dtype] == 0)
    throw Failure(kNotSupported, "dataType must be in [0, 17], but got " + std::to_string(dtype));
  return widths[dtype];
}

void* at(const void* data, uint64_t index, int32_t dtype) {
  return static_cast<char*>(const_cast<void*>(data)) + index * width(dtype);
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

// parts(own, list) lists what this rank sends and receives; all of it is awaited.
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
      parts.push_back({true, sendBuf, sendCount, dataType, i});
      parts.push_back({false, at(recvBuf, starts[i], dataType), counts[i], dataType, i});
    }
  });
}

int32_t HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, int32_t dataType,
                    uint32_t root, void* comm, void* stream) {
  return exchange("HcclScatter", comm, stream, [&](const Communicator& own, auto& parts) {
    for (uint32_t i = 0; own.rank == root && i < own.ranks; ++i) {
      parts.push_back({true, at(sendBuf, i * recvCount, dataType), recvCount, dataType, i});
    }
    parts.push_back({false, recvBuf, recvCount, dataType, root});
  });
}

int32_t HcclAlltoAll(const void* sendBuf, uint64_t sendCount, int32_t sendType, const void* recvBuf,
                     uint64_t recvCount, int32_t recvType, void* comm, void* stream) {
  return exchange("HcclAlltoAll", comm, stream, [&](const Communicator& own, auto& parts) {
    for (uint32_t i = 0; i < own.ranks; ++i) {
      parts.push_back({true, at(sendBuf, i * sendCount, sendType), sendCount, sendType, i});
      parts.push_back({false, at(recvBuf, i * recvCount, recvType), recvCount, recvType, i});
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
      parts.push_back({true, at(sendBuf, from[i], sendType), sent[i], sendType, i});
      parts.push_back({false, at(recvBuf, to[i], recvType), received[i], recvType, i});
    }
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
    if (group.depth == 0) throw Failure(kParameter, "HcclGroupStart must come first");
    if (--group.depth > 0) return;
    for (auto& [where, parts] : std::exchange(group.parts, {})) {
      submit(find(where.first), {.kind = Kind::batch, .call = call, .parts = std::move(parts)},
             where.second);
    }
  });
}

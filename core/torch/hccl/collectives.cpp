// SPDX-License-Identifier: Apache-2.0
// The collectives. Data that is only moved is sent as bytes. Data that is reduced is sent in a
// dtype that gloo reduces: 16-bit floats as float, which also rounds only once.
#include <c10/util/Registry.h>

#include "core/runtime/stream_library.h"
#include "core/torch/hccl/gloo.h"

// Where c10d finds the work of an all_reduce by device; its own declaration needs gloo's headers.
namespace c10d {
TORCH_DECLARE_TYPED_REGISTRY(GlooAllreduceRegistry, c10::DeviceType, ProcessGroupGloo::AsyncWork,
                             c10::intrusive_ptr, std::shared_ptr<gloo::Context>,
                             std::vector<at::Tensor>&, ReduceOp, uint32_t, uint64_t,
                             std::chrono::milliseconds);
}  // namespace c10d

namespace openaclnn::hccl {
namespace {

// HcclDataType and HcclReduceOp were checked by submit().
at::ScalarType scalar_type(int32_t dtype) {
  constexpr at::ScalarType types[] = {at::kChar,   at::kShort,  at::kInt,    at::kHalf,
                                      at::kFloat,  at::kLong,   at::kUInt64, at::kByte,
                                      at::kUInt16, at::kUInt32, at::kDouble, at::kBFloat16};
  if (dtype < static_cast<int32_t>(std::size(types))) return types[dtype];
  return dtype == 15 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
}

Tensor wrap(const void* data, uint64_t count, at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type).device(at::kCPU);
  if (count == 0) return at::empty({0}, options);
  return at::from_blob(const_cast<void*>(data), {static_cast<int64_t>(count)}, options);
}

Tensor typed(const void* data, uint64_t count, int32_t dtype) {
  return wrap(data, count, scalar_type(dtype));
}

Tensor bytes(const void* data, uint64_t count, int32_t dtype) {
  return wrap(data, count * c10::elementSize(scalar_type(dtype)), at::kByte);
}

at::ScalarType reduced_in(at::ScalarType type) {
  switch (type) {
    case at::kShort:
    case at::kUInt16: return at::kInt;
    case at::kUInt32:
    case at::kUInt64: return at::kLong;
    case at::kHalf:
    case at::kBFloat16: return at::kFloat;
    case at::kFloat8_e4m3fn:
    case at::kFloat8_e5m2: throw Failure(kNotSupported, "8-bit floats cannot be reduced");
    default: return type;
  }
}

c10d::ReduceOp reduction(int32_t operation) {
  using c10d::ReduceOp;
  constexpr ReduceOp::RedOpType operations[] = {ReduceOp::SUM, ReduceOp::PRODUCT, ReduceOp::MAX,
                                                ReduceOp::MIN};
  return operations[operation];
}

bool compares(int32_t operation) { return operation == 2 || operation == 3; }

// The elements of reduce_scatter if ranks get different counts.
uint64_t uneven_count(const Collective& c) {
  uint64_t count = 0;
  for (size_t i = 0; i < c.sizes.size(); ++i) count = std::max(count, c.starts[i] + c.sizes[i]);
  return count;
}

// The fields that must agree on all ranks. Data that is only moved may have any dtype.
struct Header {
  enum Field { kind, bytes, root, dtype, operation, kFields };
  int64_t field[kFields];

  explicit Header(const Collective& c)
      : field{static_cast<int64_t>(c.kind), 0, c.root, c.dtype, c.operation} {
    const uint64_t count = c.sizes.empty() ? c.count : uneven_count(c);
    field[bytes] = static_cast<int64_t>(count * c10::elementSize(scalar_type(c.dtype)));
    if (!reduces(c.kind)) field[dtype] = field[operation] = 0;
  }
  Header() = default;

  std::string text() const {
    constexpr const char* kinds[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter",
                                     "reduce"};
    constexpr const char* operations[] = {"sum", "product", "maximum", "minimum"};
    std::string text =
        std::string(kinds[field[kind]]) + " of " + std::to_string(field[bytes]) + " bytes";
    const auto its = static_cast<Collective::Kind>(field[kind]);
    if (reduces(its))
      text += std::string(" (") + operations[field[operation]] + " of " +
              c10::toString(scalar_type(static_cast<int32_t>(field[dtype]))) + ")";
    if (its == Collective::Kind::broadcast || its == Collective::Kind::reduce)
      text += " with root " + std::to_string(field[root]);
    return text;
  }
};

}  // namespace

c10::intrusive_ptr<Gloo::AsyncWork> Gloo::prepare_all_reduce(Tensor& values,
                                                             c10d::ReduceOp operation) {
  std::vector<Tensor> list{values};
  const uint32_t tag = nextTag();
  return c10d::GlooAllreduceRegistry()->Create(
      at::kCPU, getContext(tag), list, std::move(operation), tag, ++seq_, options_->timeout);
}

// Sizes that differ end the process inside gloo, or pass unnoticed. In check mode all ranks see
// whether the largest and the smallest of every field are the same. This takes a message of 80
// bytes and as long as an all_reduce of 1 KiB, which doubles the time of one of up to 1 MiB.
void GlooCommunicator::agree(const Collective& collective) {
  if (ranks == 1 || !openaclnn_is_checked()) return;
  const Header own(collective);
  int64_t both[2 * Header::kFields];
  for (int i = 0; i < Header::kFields; ++i)
    both[i] = own.field[i], both[Header::kFields + i] = -own.field[i];
  Tensor most = wrap(both, std::size(both), at::kLong);
  reduce(most, 2);
  bool same = true;
  for (int i = 0; i < Header::kFields; ++i) same &= both[i] == -both[Header::kFields + i];
  if (same) return;
  std::vector<Header> all(ranks);
  Tensor from = wrap(own.field, Header::kFields, at::kLong);
  Tensor to = wrap(all.data(), Header::kFields * ranks, at::kLong);
  finish([&] { return group_->_allgather_base(to, from); });
  std::string text;
  for (uint32_t i = 0; i < ranks; ++i)
    text += (i == 0 ? "rank " : ", rank ") + std::to_string(i) + " " + all[i].text();
  throw Failure(kParameter, "the ranks make different calls: " + text);
}

void GlooCommunicator::reduce(Tensor& values, int32_t operation) {
  const at::ScalarType type = values.scalar_type(), wide = reduced_in(type);
  Tensor work = values;
  // uint64 as int64: the same order once the top bit is flipped; sums and products agree modulo
  // 2^64.
  const bool turned = type == at::kUInt64 && compares(operation);
  if (type == at::kUInt64) {
    work = values.view(at::kLong);
    if (turned) work = work.bitwise_xor(INT64_MIN);
  } else if (wide != type) {
    work = values.to(wide);
  }
  c10::intrusive_ptr<Gloo::AsyncWork> prepared;
  {
    const std::lock_guard lock(order_);
    prepared = group_->prepare_all_reduce(work, reduction(operation));
  }
  prepared->run();
  if (turned) work.bitwise_xor_(INT64_MIN);
  if (turned) work = work.view(at::kUInt64);
  if (wide != type && (type != at::kUInt64 || turned)) values.copy_(work);
}

// Matches sends of this rank to itself with its receives, in order.
void GlooCommunicator::exchange_with_itself(const std::vector<Part>& parts) {
  std::deque<const Part*> sent, received;
  for (const Part& part : parts) {
    if (part.peer == rank && part.count > 0) (part.sends ? sent : received).push_back(&part);
  }
  if (sent.size() != received.size())
    throw Failure(kParameter, "a rank must receive from itself what it sends to itself, but " +
                                  std::to_string(sent.size()) + " sends meet " +
                                  std::to_string(received.size()) + " receives");
  for (size_t i = 0; i < sent.size(); ++i) {
    const Tensor from = bytes(sent[i]->data, sent[i]->count, sent[i]->dtype);
    Tensor to = bytes(received[i]->data, received[i]->count, received[i]->dtype);
    if (from.numel() != to.numel())
      throw Failure(kParameter, "a rank must receive from itself as many bytes as it sends, but " +
                                    std::to_string(from.numel()) + " meet " +
                                    std::to_string(to.numel()));
    to.copy_(from);
  }
}

// Receives are posted first.
void GlooCommunicator::exchange(const std::vector<Part>& parts, bool eager) {
  exchange_with_itself(parts);
  std::vector<Work> works;
  std::vector<Tensor> kept;
  {
    const std::lock_guard lock(order_);
    for (const bool sends : {false, true}) {
      for (const Part& part : parts) {
        if (part.sends != sends || part.count == 0 || part.peer == rank) continue;
        Tensor data = bytes(part.data, part.count, part.dtype);
        const int peer = static_cast<int>(part.peer);
        if (sends && eager) data = data.clone();
        std::vector<Tensor> list{data};
        Work work = sends ? group_->send(list, peer, 0) : group_->recv(list, peer, 0);
        if (sends && eager) {
          sends_.add(std::move(work), std::move(data));
        } else {
          works.push_back(std::move(work));
          kept.push_back(std::move(data));
        }
      }
    }
  }
  for (const Work& work : works) work->wait();
}

void GlooCommunicator::run(const Collective& c) {
  using Kind = Collective::Kind;
  if (c.kind != Kind::exchange && c.kind != Kind::batch) agree(c);
  switch (c.kind) {
    case Kind::exchange: return exchange(c.parts, false);
    case Kind::batch: return exchange(c.parts, true);
    case Kind::all_reduce: {
      if (c.count == 0) return;
      Tensor values = typed(c.receive, c.count, c.dtype);
      if (c.send != c.receive) values.copy_(typed(c.send, c.count, c.dtype));
      return reduce(values, c.operation);
    }
    case Kind::broadcast: {
      if (c.count == 0) return;
      std::vector<Tensor> list{bytes(c.send, c.count, c.dtype)};
      c10d::BroadcastOptions options;
      options.rootRank = c.root;
      return finish([&] { return group_->broadcast(list, options); });
    }
    case Kind::all_gather: {
      if (c.count == 0) return;
      Tensor from = bytes(c.send, c.count, c.dtype);
      Tensor to = bytes(c.receive, c.count * ranks, c.dtype);
      return finish([&] { return group_->_allgather_base(to, from); });
    }
    case Kind::reduce_scatter: {
      uint64_t total = c.count * ranks;
      uint64_t start = c.count * rank;
      if (!c.sizes.empty()) {
        total = uneven_count(c);
        start = c.starts[rank];
      }
      if (total == 0) return;
      Tensor all = typed(c.send, total, c.dtype).clone();
      reduce(all, c.operation);
      const auto begin = static_cast<int64_t>(start), size = static_cast<int64_t>(c.count);
      typed(c.receive, c.count, c.dtype).copy_(all.slice(0, begin, begin + size));
      return;
    }
    case Kind::reduce: {
      if (c.count == 0) return;
      Tensor all = typed(c.send, c.count, c.dtype).clone();
      reduce(all, c.operation);
      if (rank == c.root) typed(c.receive, c.count, c.dtype).copy_(all);
      return;
    }
  }
}

}  // namespace openaclnn::hccl

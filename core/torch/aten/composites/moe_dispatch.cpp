// SPDX-License-Identifier: Apache-2.0
// Tokens to the ranks of their experts. assistInfo stays zero: combine finds the places by
// expertIds.
#include "core/torch/aten/composites/expert_ranks.h"

namespace openaclnn::aten {
namespace {

void moe_dispatch_v4(Tensor x, Tensor ids, Tensor scales, Tensor mask, Tensor gates, Tensor elastic,
                     Tensor performance, Text name, int64_t world, int64_t rank, int64_t experts,
                     Text, int64_t tensor_ranks, int64_t, int64_t shard, int64_t shared,
                     int64_t shared_ranks, int64_t quant, int64_t global_rows, int64_t nums_type,
                     Text, int64_t zero, int64_t copy, int64_t constant, Out out, Out dynamic,
                     Out assist, Out nums, Out counts, Out tensor_counts, Out gates_out) {
  const Experts e{name,   world,        rank,        experts, tensor_ranks, shard,
                  shared, shared_ranks, global_rows, zero,    copy,         constant};
  require(!has(elastic) && !has(performance), "elasticInfo and performanceInfo must be NULL");
  require(quant == 0 || quant == 2, "quantMode must be 0, none, or 2, dynamic INT8, but got ",
          quant, "; only Ascend 950 has others");
  require(nums_type == 0 || nums_type == 1, "expertTokenNumsType must be 0, ends, or 1, counts, ",
          "but got ", nums_type);
  const Group group = e.group();
  check_tokens(x, "x", ids, mask, gates);
  check_rank(x, "x", 2, 2);
  const int64_t h = x.size(1), local = e.local(), own = e.is_shared(rank) ? 1 : local;
  require_shape(x.size(0) == ids.size(0), "expertIds must have a row for each of the ", x.size(0),
                " tokens of x, but has shape ", ids.sizes());
  if (has(scales)) check_shape(scales, "scales", {(shared_ranks > 0 ? shared : 0) + experts, h});
  check_rank(out.tensor(), "expandX", 2, 2);
  require_shape(out.tensor().size(1) == h, "expandX must have ", h, " columns, but has shape ",
                out.tensor().sizes());
  require_shape(nums.tensor().numel() == own, "expertTokenNums must have ", own,
                " elements, but has shape ", nums.tensor().sizes());
  require_shape(counts.tensor().numel() >= world * own, "epRecvCounts must have ", world * own,
                " elements, but has shape ", counts.tensor().sizes());
  require((out.tensor().scalar_type() == at::kChar) == (quant == 2),
          "expandX must be INT8 where quantMode is 2, and only there, but is ",
          out.tensor().scalar_type());
  if (x.is_meta()) return;

  const Routing routing(e, ids, mask);
  const Tensor tokens = routing.column(&SentRow::token);
  Tensor rows = x.index_select(0, tokens), row_scales;
  if (quant == 2) {
    rows = rows.to(at::kFloat);
    if (has(scales)) {
      const int64_t skipped = shared_ranks > 0 ? 0 : shared;  // no rows of scales
      const Tensor expert = routing.column(&SentRow::expert) - skipped;
      rows = rows * scales.to(at::kFloat).index_select(0, expert);
    }
    const Quantised q = quantised_rows(rows);
    rows = q.numbers, row_scales = q.scale;
  }
  group.agree(
      {kDispatch, h, number_of(x.scalar_type()), experts, shared_ranks, quant, gates.defined()},
      "operator, row size, dtype, numbers of experts, quantMode and expertScales");
  const Tensor theirs = group.exchanged(at::tensor(routing.counts.of, at::kLong));
  const Counts received{numbers_in(theirs, "counts"), world, local};
  group.require_all(received.total() <= out.tensor().size(0),
                    "expandX must have a row for each row that arrives");
  const Ints from = routing.counts.by_rank(), to = received.by_rank();
  const Tensor order = received.by_expert_first(x);
  const auto moved = [&](const Tensor& its) {
    return group.exchanged(its, from, to).index_select(0, order);
  };
  put_first(out, moved(rows));
  if (quant == 2) put_first(dynamic, moved(row_scales));
  if (gates.defined()) {
    const Tensor choice = routing.column(&SentRow::choice);
    const Tensor place = tokens * ids.size(1) + choice.clamp_min(0);
    const Tensor weight = gates.to(at::kFloat).flatten().index_select(0, place);
    put_first(gates_out, moved(at::where(choice < 0, 1, weight)));
  }
  Ints by_expert = received.by_expert();
  by_expert.resize(static_cast<size_t>(own));
  const Tensor per_expert = at::tensor(by_expert, at::kLong);
  nums = (nums_type == 0 ? per_expert.cumsum(0) : per_expert).reshape(nums.tensor().sizes());
  const Ints ends = ends_of(received, own);
  put_first(counts, at::tensor(ends, at::kLong));
  put_first(tensor_counts, at::tensor(Ints{ends.back()}, at::kLong));
  put_first(assist, at::zeros({0}, at::kLong));
}

void moe_dispatch_v3(Tensor x, Tensor ids, Tensor scales, Tensor mask, Tensor gates, Tensor elastic,
                     Text name, int64_t world, int64_t rank, int64_t experts, Text, int64_t tp,
                     int64_t, int64_t shard, int64_t shared, int64_t shared_ranks, int64_t quant,
                     int64_t global_rows, int64_t type, Text, int64_t zero, int64_t copy,
                     int64_t constant, Out out, Out dynamic, Out assist, Out nums, Out counts,
                     Out tensor_counts, Out gates_out) {
  moe_dispatch_v4(x, ids, scales, mask, gates, elastic, {}, name, world, rank, experts, {}, tp, 0,
                  shard, shared, shared_ranks, quant, global_rows, type, {}, zero, copy, constant,
                  out, dynamic, assist, nums, counts, tensor_counts, gates_out);
}
void moe_dispatch_v2(Tensor x, Tensor ids, Tensor scales, Tensor mask, Tensor gates, Text name,
                     int64_t world, int64_t rank, int64_t experts, Text, int64_t tp, int64_t,
                     int64_t shard, int64_t shared, int64_t shared_ranks, int64_t quant,
                     int64_t global_rows, int64_t type, Text, Out out, Out dynamic, Out assist,
                     Out nums, Out counts, Out tensor_counts, Out gates_out) {
  moe_dispatch_v4(x, ids, scales, mask, gates, {}, {}, name, world, rank, experts, {}, tp, 0, shard,
                  shared, shared_ranks, quant, global_rows, type, {}, 0, 0, 0, out, dynamic, assist,
                  nums, counts, tensor_counts, gates_out);
}
void moe_dispatch(Tensor x, Tensor ids, Tensor scales, Tensor mask, Tensor gates, Text name,
                  int64_t world, int64_t rank, int64_t experts, Text, int64_t tp, int64_t,
                  int64_t shard, int64_t shared, int64_t shared_ranks, int64_t quant,
                  int64_t global_rows, int64_t type, Out out, Out dynamic, Out assist, Out nums,
                  Out counts, Out tensor_counts, Out gates_out) {
  moe_dispatch_v4(x, ids, scales, mask, gates, {}, {}, name, world, rank, experts, {}, tp, 0, shard,
                  shared, shared_ranks, quant, global_rows, type, {}, 0, 0, 0, out, dynamic, assist,
                  nums, counts, tensor_counts, gates_out);
}

}  // namespace

const Composite moe_dispatch_composites[] = {
    ENTRY(moe_dispatch), ENTRY(moe_dispatch_v2), ENTRY(moe_dispatch_v3), ENTRY(moe_dispatch_v4), {},
};

}  // namespace openaclnn::aten

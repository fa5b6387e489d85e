// SPDX-License-Identifier: Apache-2.0
// The way of tokens to their experts (InitRouting), quantised where asked, and back
// (FinalizeRouting). A slot is a choice k of token t: t K + k, or k T + t where columns come first.
#include "core/torch/aten/composites/places.h"

namespace openaclnn::aten {
namespace {

constexpr int64_t kCopied = -1, kStatic = 0, kDynamic = 1, kDynamicInt4 = 13;

struct Routing {
  Tensor x, expert_idx, scale, offset;
  int64_t active, capacity, experts, padded, quant_mode;
  int64_t low, high;  // the experts whose tokens are taken
  bool counted;       // whether counts are asked for; they have the size of the range
  bool by_position;   // expandedRowIdx is the slot of each row, not the row of each slot
  Out expanded, row_idx, scales;

  Tensor order{}, inside{}, counts{};

  // Fills counts: the tokens of each expert of the range.
  void run() {
    const int64_t tokens = x.size(0), choices = expert_idx.size(1), slots = tokens * choices;
    require_shape(choices > 0, "expertIdx must have a choice for each token, but has shape ",
                  expert_idx.sizes());
    check_given(expanded.tensor(), "expandedXOut");
    check_modes(tokens);
    const Tensor flat = expert_idx.flatten().to(at::kLong);
    inside = (flat >= low).bitwise_and(flat < high);
    // Experts before the range go to the end, those after it stay behind it.
    const Tensor key = choose(flat < low, std::numeric_limits<int32_t>::max(), flat);
    const auto [sorted, order_] = at::sort(key, std::optional<bool>(true), -1, false);
    order = order_;
    const Tensor expert = sorted - low;
    const int64_t range = high - low;
    if (padded != 0) check_shape(expanded.tensor(), "expandedXOut", columns({range, capacity}));
    if (counted) {
      counts = at::zeros({range + 1}, flat.options());
      counts.scatter_add_(0, choose(inside, flat - low, range), at::ones_like(flat));
      counts = counts.slice(0, 0, range);
    }
    if (padded != 0) return pad(expert, choices);
    const int64_t size = active > 0 ? std::min(active, slots) : slots;
    check_shape(expanded.tensor(), "expandedXOut", columns({size}));
    int64_t taken = size;
    if (!inside.is_meta()) taken = std::min(size, inside.count_nonzero().item<int64_t>());
    const Tensor source = order.slice(0, 0, taken).div(choices, "trunc");
    const auto [numbers, scale_of_rows] = quantised(source, expert.slice(0, 0, taken));
    put_rows(filled(numbers, size), filled(scale_of_rows, size));
    row_idx = (by_position ? order : choose(inside, inverse_of(order), -1)).to(at::kInt);
  }

 private:
  bool four_bits() const { return quant_mode == kDynamicInt4; }
  // The shape of rows; bytes of two 4-bit integers count half.
  Ints columns(Ints lead) const {
    const at::ScalarType dtype = expanded.tensor().scalar_type();
    const int64_t last = expanded.tensor().dim() == 0 ? 0 : expanded.tensor().size(-1);
    const bool part = four_bits() && (dtype == at::kInt || last * 2 == x.size(1));
    lead.push_back(!part ? x.size(1) : dtype == at::kInt ? x.size(1) / 8 : x.size(1) / 2);
    return lead;
  }

  void check_modes(int64_t tokens) const {
    require(quant_mode == kCopied || quant_mode == kStatic || quant_mode == kDynamic ||
                quant_mode == kDynamicInt4,
            "quantMode must be -1, none, 0, static, 1, dynamic, or 13, dynamic to INT4: others ",
            "belong to Ascend 950, but got ", quant_mode);
    if (quant_mode != kCopied) check_real(x, "x");
    if (quant_mode == kCopied && has(scale))
      require_shape(scale.numel() == tokens, "scale must have a number for each of the ", tokens,
                    " tokens, but has shape ", scale.sizes());
    if (quant_mode == kStatic) {
      check_given(scale, "scale");
      check_given(offset, "offset");
      require_shape(scale.numel() == 1 && offset.numel() == 1,
                    "scale and offset must have one element each where quantMode is 0");
    }
    const bool smooth = quant_mode == kDynamic || quant_mode == kDynamicInt4;
    if (smooth && has(scale))
      require_shape(scale.dim() == 2 && scale.size(1) == x.size(1) &&
                        (scale.size(0) == 1 || scale.size(0) == high - low),
                    "scale must have shape [1 or ", high - low, ", ", x.size(1), "], but got ",
                    scale.sizes());
    require(padded == 0 || capacity > 0, "expertCapacity must be at least 1 where dropPadMode is 1",
            ", but got ", capacity);
  }

  // The rows of the tokens, and their scales.
  std::pair<Tensor, Tensor> quantised(const Tensor& source, const Tensor& expert) const {
    const Tensor rows = select_rows(x, source);
    if (quant_mode == kCopied)
      return {rows, has(scale) ? select_rows(scale.flatten(), source) : Tensor()};
    if (quant_mode == kStatic) {
      const Tensor y = rows.to(at::kHalf) * scale.to(at::kHalf).reshape({});  // rounded to FLOAT16
      return {to_integers((y + offset.to(at::kHalf).reshape({})).to(at::kFloat)), {}};
    }
    Tensor v = rows.to(at::kFloat);
    if (has(scale)) {
      const Tensor own = at::clamp(expert, 0, scale.size(0) - 1);
      v = v * select_rows(scale, own).to(at::kFloat);
    }
    const Quantised q = quantised_rows(v, four_bits() ? Bits::four : Bits::eight);
    return {q.numbers, q.scale};
  }

  static Tensor filled(const Tensor& x, int64_t size) {
    if (!x.defined() || x.size(0) == size) return x;
    Ints shape = x.sizes().vec();
    shape[0] = size;
    const Tensor made = at::zeros(shape, x.options());
    made.slice(0, 0, x.size(0)).copy_(x);
    return made;
  }

  void put_rows(const Tensor& numbers, const Tensor& scale_of_rows) const {
    if (quant_mode == kCopied)
      expanded = numbers;
    else
      put_integers(expanded, numbers);
    if (scale_of_rows.defined())
      scales = scale_of_rows;
    else
      leave(scales.tensor());
  }

  // The first tokens of each expert, as many as its capacity; zeros after them.
  void pad(const Tensor& expert, int64_t choices) const {
    const int64_t range = high - low;
    const Tensor start = counts.cumsum(0) - counts;
    const Tensor valid = select_rows(inside, order);
    const Tensor own = at::clamp(expert, 0, range - 1);
    const Tensor position = numbers_to(order.numel(), order) - select_rows(start, own);
    const Tensor kept = valid.bitwise_and(position < capacity);
    const Tensor place = choose(kept, own * capacity + position, -1);
    const auto [numbers, scale_of_rows] = quantised(order.div(choices, "trunc"), expert);
    const Tensor rows = rows_to(numbers, place, range * capacity);
    put_rows(rows.reshape({range, capacity, x.size(1)}),
             scale_of_rows.defined()
                 ? rows_to(scale_of_rows.unsqueeze(1), place, range * capacity).squeeze(1)
                 : Tensor());
    row_idx = at::empty_like(order).scatter_(0, order, place).to(at::kInt);
  }
};

// ---- InitRouting: rowIdx names the slots, columns first ----

void init_by_rows(const Tensor& x, const Tensor& row_idx, const Tensor& expert_idx, int64_t active,
                  Tensor* rows, const Out& out_rows, const Out& out_experts) {
  const int64_t tokens = x.size(0), choices = expert_idx.size(1);
  check_shape(row_idx, "rowIdx", expert_idx.sizes());
  require(active >= 0, "activeNum must be from 0, but got ", active);
  const auto [expert, order] = at::sort(expert_idx.flatten(), std::optional<bool>(true), -1, false);
  const Tensor source = select_rows(row_idx.flatten().to(at::kLong), order);
  const Tensor place = numbers_to(order.numel(), order).unsqueeze(1);
  out_rows = rows_to(place, source, order.numel()).squeeze(1).to(at::kInt);
  out_experts = expert;
  const int64_t count = std::min(active, tokens) * choices;
  *rows = rows_at(x, source.slice(0, 0, count).remainder(std::max<int64_t>(tokens, 1)));
}

void moe_init_routing(Tensor x, Tensor row_idx, Tensor expert_idx, int64_t active, Out expanded,
                      Out out_rows, Out out_experts) {
  Tensor rows;
  init_by_rows(x, row_idx, expert_idx, active, &rows, out_rows, out_experts);
  expanded = rows;
}

void moe_init_routing_quant(Tensor x, Tensor row_idx, Tensor expert_idx, int64_t active,
                            double scale, double offset, Out expanded, Out out_rows,
                            Out out_experts) {
  check_real(x, "x");
  Tensor rows;
  init_by_rows(x, row_idx, expert_idx, active, &rows, out_rows, out_experts);
  put_integers(expanded, to_integers(rows.to(at::kFloat) * scale + offset));
}

// ---- V2, V3 ----

struct Counts {
  int64_t flag;  // 0: none, 1: sums up to each expert, 2: counts
  bool before;
  Out counts, before_capacity;
};

void route_v2(Routing r, const Counts& c) {
  const bool before = c.before && r.padded != 0;
  r.counted = c.flag != 0 || r.padded != 0;
  require(!r.counted || r.experts > 0,
          "expertNum must be at least 1 where counts are asked for or ",
          "dropPadMode is 1, but got ", r.experts);
  // These lists bound the number of experts.
  if (c.flag != 0) check_shape(c.counts.tensor(), "expertTokensCountOrCumsumOut", {r.experts});
  if (before) check_shape(c.before_capacity.tensor(), "expertTokensBeforeCapacityOut", {r.experts});
  r.high = r.experts > 0 ? r.experts : std::numeric_limits<int32_t>::max();
  r.run();
  if (c.flag != 0)
    c.counts = c.flag == 1 ? r.counts.cumsum(0) : r.counts;
  else
    leave(c.counts.tensor());
  if (before)
    c.before_capacity = r.counts;
  else
    leave(c.before_capacity.tensor());
}

void moe_init_routing_v2(Tensor x, Tensor expert_idx, int64_t active, int64_t capacity,
                         int64_t experts, int64_t padded, int64_t flag, bool before, Out expanded,
                         Out row_idx, Out counts, Out before_capacity) {
  route_v2({x,
            expert_idx,
            {},
            {},
            active,
            capacity,
            experts,
            padded,
            kCopied,
            0,
            0,
            false,
            false,
            expanded,
            row_idx,
            Out({}, "")},
           {flag, before, counts, before_capacity});
}

void moe_init_routing_quant_v2(Tensor x, Tensor expert_idx, Tensor scale, Tensor offset,
                               int64_t active, int64_t capacity, int64_t experts, int64_t padded,
                               int64_t flag, bool before, int64_t quant_mode, Out expanded,
                               Out row_idx, Out counts, Out before_capacity, Out scales) {
  require(quant_mode == kStatic || quant_mode == kDynamic,
          "quantMode must be 0, static, or 1, dynamic, but got ", quant_mode);
  route_v2({x, expert_idx, scale, offset, active, capacity, experts, padded, quant_mode, 0, 0,
            false, false, expanded, row_idx, scales},
           {flag, before, counts, before_capacity});
}

// (id, count) of the experts that have tokens, then zeros.
Tensor pairs(const Tensor& counts, int64_t low, int64_t rows) {
  const Tensor order = stable_order(counts == 0);
  const Tensor count = select_rows(counts, order);
  const Tensor found = at::stack({choose(count > 0, order + low, 0), count}, 1);
  const Tensor made = at::zeros({rows, 2}, counts.options());
  made.slice(0, 0, found.size(0)).copy_(found);
  return made;
}

void moe_init_routing_v3(Tensor x, Tensor expert_idx, Tensor scale, Tensor offset, int64_t active,
                         int64_t capacity, int64_t experts, int64_t padded, int64_t counts_type,
                         bool counted, int64_t quant_mode, Ints range, int64_t row_idx_type,
                         Out expanded, Out row_idx, Out counts, Out scales) {
  if (range.empty()) range = {0, experts};
  require(range.size() == 2 && 0 <= range[0] && range[0] < range[1] && range[1] <= experts,
          "activeExpertRange must be two ascending numbers from 0 to expertNum, ", experts,
          ", but got ", at::IntArrayRef(range));
  const int64_t low = range[0], high = range[1];
  require(padded == 0 || (low == 0 && high == experts && row_idx_type == 0),
          "activeExpertRange must be all experts and rowIdxType 0 where dropPadMode is 1");
  if (counted && counts_type == 2)
    check_shape(counts.tensor(), "expertTokensCountOrCumsumOut", {experts, 2});
  else if (counted)
    check_shape(counts.tensor(), "expertTokensCountOrCumsumOut", {high - low});
  Routing r{x,
            expert_idx,
            scale,
            offset,
            active,
            capacity,
            experts,
            padded,
            quant_mode,
            low,
            high,
            counted || padded != 0,
            row_idx_type == 1,
            expanded,
            row_idx,
            scales};
  r.run();
  if (!counted) return leave(counts.tensor());
  counts = counts_type == 2   ? pairs(r.counts, low, experts)
           : counts_type == 0 ? r.counts.cumsum(0)
                              : r.counts;
}

}  // namespace

const Composite moe_routing_composites[] = {
    ENTRY(moe_init_routing),          ENTRY(moe_init_routing_quant), ENTRY(moe_init_routing_v2),
    ENTRY(moe_init_routing_quant_v2), ENTRY(moe_init_routing_v3),    {},
};

}  // namespace openaclnn::aten

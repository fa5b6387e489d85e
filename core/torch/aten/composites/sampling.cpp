// SPDX-License-Identifier: Apache-2.0
// Choosing tokens: the k largest logits, those that have the probability p together. In float.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

constexpr int64_t kMostTokens = 1024;  // the device keeps as many

// Logits that are not kept become -inf. Those equal to the k-th are kept; of p those behind the
// sum 1 - p from the smallest on, and the largest always.
void apply_top_k_top_p(Tensor logits, Tensor p, Tensor k, Out out) {
  check_rank(logits, "logits", 2, 2);
  const int64_t batches = logits.size(0), size = logits.size(1);
  require(p.defined() || k.defined(), "p or k must be given");
  if (p.defined()) check_shape(p, "p", {batches});
  if (k.defined()) check_shape(k, "k", {batches});
  require(logits.is_floating_point(), "logits must have floating-point numbers, but are ",
          logits.scalar_type());
  check_result(out.tensor(), logits, "out");
  if (k.defined()) check_positions(k, "k", size + 1, 1);
  if (logits.numel() == 0 || logits.is_meta()) {
    out = logits;
    return;
  }
  auto [v, place] = at::sort(at_least_float(logits), /*stable=*/true, -1, false);
  Tensor dropped = at::zeros(v.sizes(), v.options().dtype(at::kBool));
  if (k.defined()) {
    const Tensor least = v.gather(1, size - k.to(at::kLong).unsqueeze(1));
    dropped = v < least;
    v = v.masked_fill(dropped, -INFINITY);
  }
  if (p.defined()) {
    const Tensor sums = at::cumsum(at::softmax(v, -1), -1);
    const Tensor small = sums <= 1 - p.to(v.scalar_type()).unsqueeze(1);
    small.select(1, size - 1).fill_(false);
    dropped = dropped.logical_or(small);
  }
  const Tensor at_logits = at::empty_like(dropped).scatter(1, place, dropped);
  out = logits.masked_fill(at_logits, -INFINITY);
}

struct Sampler {
  double eps;
  bool is_logits;
  int64_t most;  // a k above it has no effect
};

// The candidates of one row: their probabilities and places, in descending order.
std::pair<Tensor, Tensor> candidates(const Sampler& s, const Tensor& row, int64_t k, double p,
                                     double min_p) {
  const bool use_k = k >= 1 && k <= s.most;
  const auto probabilities = [&](const Tensor& x) { return s.is_logits ? at::softmax(x, -1) : x; };
  Tensor v, place, pr;
  if (!use_k && p >= 1 && !(min_p >= 1)) {  // as they are
    place = at::arange(row.size(0));
    pr = probabilities(row);
  } else {
    std::tie(v, place) = at::sort(row, /*stable=*/true, 0, true);
    if (use_k) {
      v = v.narrow(0, 0, k);
      place = place.narrow(0, 0, k);
    }
    pr = probabilities(v);
    int64_t count = pr.size(0);
    if (!(p > 0)) {
      count = 1;
      if (s.is_logits) pr = at::ones({1}, pr.options());
    } else if (p < 1) {
      count = std::max<int64_t>(1, ((at::cumsum(pr, 0) - pr) < p).sum().item<int64_t>());
    }
    if (min_p >= 1) count = 1;
    pr = pr.narrow(0, 0, count);
    place = place.narrow(0, 0, count);
  }
  if (min_p > 0 && min_p < 1) {
    const Tensor kept = at::nonzero(pr >= pr.max() * min_p).flatten();
    if (kept.numel() > 0) return {pr.index_select(0, kept), place.index_select(0, kept)};
  }
  return {pr, place};
}

bool is_wanted(const Out& out) { return out.tensor().defined() && out.tensor().numel() > 0; }

void top_k_top_p_sample_v2(Tensor logits, Tensor top_k, Tensor top_p, Tensor q, Tensor min_p,
                           double eps, bool need_logits, int64_t, int64_t most, bool is_logits,
                           bool need_result, Out select, Out kept_logits, Out index, Out sorted) {
  check_rank(logits, "logits", 2, 2);
  const int64_t batches = logits.size(0), size = logits.size(1);
  require(logits.is_floating_point() && size > 0,
          "logits must have floating-point numbers in each row, but are ", logits.scalar_type(),
          " with shape ", logits.sizes());
  check_shape(top_k, "topK", {batches});
  check_shape(top_p, "topP", {batches});
  check_optional(q, "q", logits.sizes());
  check_optional(min_p, "minPs", {batches});
  const auto options = logits.options().dtype(at::kFloat);
  const Tensor chosen = at::zeros({batches}, options.dtype(at::kLong));
  const Tensor left = at::full(logits.sizes(), is_logits ? -INFINITY : 0, options);
  const Tensor places = at::zeros(logits.sizes(), options.dtype(at::kLong));
  const Tensor probabilities = at::zeros(logits.sizes(), options);
  for (const Out* place : {&select, &index})
    require(!place->tensor().defined() ||
                c10::isIntegralType(place->tensor().scalar_type(), /*includeBool=*/false),
            "logitsSelectIdx and logitsIdx must have integers, but one is ",
            place->tensor().scalar_type());
  check_result(select.tensor(), chosen, "logitsSelectIdx");
  if (need_logits) check_result(kept_logits.tensor(), left, "logitsTopKPSelect");
  if (need_result) {
    check_result(index.tensor(), places, "logitsIdx");
    check_result(sorted.tensor(), probabilities, "logitsSortMasked");
  }
  need_data(logits);
  const int64_t aligned =
      most >= kMostTokens ? kMostTokens : (std::max<int64_t>(most, 0) + 7) / 8 * 8;
  const Sampler sampler{eps, is_logits, std::min({aligned, kMostTokens, size})};
  const Tensor wide = logits.to(at::kFloat);
  for (int64_t b = 0; b < batches; ++b) {
    const auto number = [b](const Tensor& x) { return x[b].to(at::kDouble).item<double>(); };
    const auto [pr, place] = candidates(sampler, wide[b], top_k[b].to(at::kLong).item<int64_t>(),
                                        number(top_p), min_p.defined() ? number(min_p) : 0);
    const int64_t count = pr.size(0);
    const Tensor rank =
        q.defined() ? pr / (q[b].to(at::kFloat).narrow(0, 0, count).abs() + eps) : pr;
    chosen[b].copy_(place[rank.argmax().item<int64_t>()]);
    left[b].index_copy_(0, place, wide[b].index_select(0, place));
    places[b].narrow(0, 0, count).copy_(place);
    probabilities[b].narrow(0, 0, count).copy_(pr);
  }
  select = chosen;
  if (need_logits) kept_logits = left;
  if (need_result) {
    index = places;
    sorted = probabilities;
  }
  if (!need_logits && is_wanted(kept_logits)) leave(kept_logits.tensor());
  if (!need_result && is_wanted(index)) leave(index.tensor());
  if (!need_result && is_wanted(sorted)) leave(sorted.tensor());
}

void top_k_top_p_sample(Tensor logits, Tensor top_k, Tensor top_p, Tensor q, double eps,
                        bool need_logits, int64_t guess, Out select, Out kept_logits) {
  top_k_top_p_sample_v2(logits, top_k, top_p, q, {}, eps, need_logits, guess, kMostTokens, true,
                        false, select, kept_logits, Out({}, "logitsIdx"),
                        Out({}, "logitsSortMasked"));
}

// ---- steps of a batch of requests: the sampled token becomes the input of the next step ----

void check_requests(const Tensor& tokens, const Tensor& positions, const Tensor& lengths,
                    const Tensor& slots, const Tensor& tables, int64_t sequences, int64_t size) {
  const std::pair<const char*, const Tensor*> given[] = {{"inputTokens", &tokens},
                                                         {"inputPositions", &positions},
                                                         {"seqLens", &lengths},
                                                         {"slotMapping", &slots}};
  for (const auto& [name, x] : given) {
    check_given(*x, name);
    require(x->scalar_type() == at::kLong, name, " must be INT64, but is ", x->scalar_type());
    require_shape(x->dim() >= 1 && x->size(0) == sequences, name, " must have ", sequences,
                  " entries, but has shape ", x->sizes());
  }
  check_rank(tables, "blockTables", 2, 2);
  require(size > 0, "blockSize must be at least 1, but is ", size);
}

// The slot of a position by the table of its request.
Tensor slots_at(const Tensor& tables, const Tensor& requests, const Tensor& positions,
                int64_t size) {
  const Tensor page = at::div(positions, size, "floor");
  check_positions(page, "the pages of the positions", tables.size(1));
  return at::index(tables.to(at::kLong), {requests, page}) * size + positions.remainder(size);
}

void advance_step(Tensor tokens, Tensor sampled, Tensor positions, Tensor lengths, Tensor slots,
                  Tensor tables, int64_t sequences, int64_t queries, int64_t size) {
  check_requests(tokens, positions, lengths, slots, tables, sequences, size);
  require(queries >= 0 && queries <= sequences, "numQueries must be in [0, ", sequences,
          "], but is ", queries);
  require_shape(sampled.numel() >= queries && tables.size(0) >= queries &&
                    tokens.numel() == sequences && positions.numel() == sequences &&
                    lengths.numel() == sequences && slots.numel() == sequences,
                "sampledTokenIds and blockTables must have an entry for each of the ", queries,
                " queries and the others one for each of the ", sequences, " sequences");
  need_data(tokens);
  const auto of = [&](const Tensor& x) { return x.flatten().narrow(0, 0, queries); };
  const Tensor place = of(lengths).clone();
  const Tensor made = slots_at(tables, at::arange(queries), place, size);
  const auto padded = [&](const Tensor& to, const Tensor& values, int64_t other) {
    const Tensor whole = at::full({sequences}, other, to.options());
    whole.narrow(0, 0, queries).copy_(values);
    to.copy_(whole.reshape(to.sizes()));
  };
  padded(tokens, of(sampled), 0);
  padded(positions, place, 0);
  padded(slots, made, -1);
  const Tensor longer = lengths.flatten().clone();
  longer.narrow(0, 0, queries).copy_(place + 1);
  lengths.copy_(longer.reshape(lengths.sizes()));
}

// With n - 1 proposed tokens for each request, of which some were accepted: the last sampled token
// is followed by the new proposals.
void advance_step_v2(Tensor tokens, Tensor sampled, Tensor positions, Tensor lengths, Tensor slots,
                     Tensor tables, Tensor proposed, Tensor accepted, int64_t sequences,
                     int64_t queries, int64_t size) {
  check_requests(tokens, positions, lengths, slots, tables, sequences, size);
  check_rank(sampled, "sampledTokenIds", 2, 2);
  check_rank(proposed, "specToken", 2, 2);
  const int64_t n = proposed.size(1) + 1, requests = proposed.size(0);
  require(queries >= 0 && queries <= sequences, "numQueries must be in [0, ", sequences,
          "], but is ", queries);
  require_shape(requests * n == sequences && sampled.size(0) == requests && sampled.size(1) > 0 &&
                    accepted.numel() == requests && tables.size(0) >= requests &&
                    tokens.numel() == sequences && positions.numel() == sequences &&
                    lengths.numel() == sequences && slots.numel() == sequences,
                "specToken must have a row for each request and the others ", n,
                " tokens of each, numSeqs in all, but it has shape ", proposed.sizes());
  need_data(tokens);
  const Tensor request = at::arange(requests).repeat_interleave(n);
  const Tensor place =
      positions.flatten() + accepted.flatten().to(at::kLong).index_select(0, request) + 1;
  const Tensor made = slots_at(tables, request, place, size);
  const Tensor whole = sampled.to(at::kLong);
  const Tensor is_end = at::cat({whole == -1, at::ones({requests, 1}, at::kBool)}, 1);
  const Tensor last = (is_end.to(at::kInt).argmax(1, true) - 1).clamp_min(0);
  const Tensor next = at::cat({whole.gather(1, last), proposed.to(at::kLong)}, 1);
  tokens.copy_(next.reshape(tokens.sizes()));
  positions.copy_(place.reshape(positions.sizes()));
  lengths.copy_((place + 1).reshape(lengths.sizes()));
  slots.copy_(made.reshape(slots.sizes()));
}

}  // namespace

const Composite sampling_composites[] = {
    ENTRY(apply_top_k_top_p), ENTRY(top_k_top_p_sample), ENTRY(top_k_top_p_sample_v2),
    ENTRY(advance_step),      ENTRY(advance_step_v2),    {},
};

}  // namespace openaclnn::aten

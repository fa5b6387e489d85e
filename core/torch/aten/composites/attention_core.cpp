// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/composites/attention.h"

namespace openaclnn::aten {
namespace {

// Rows of one head of k are those of its G heads of q: row m is position m / G of head m % G.
struct Block {
  int64_t head, heads;  // of k
  int64_t row, rows;
  int64_t key, keys;
};

class Blocks {
 public:
  explicit Blocks(const Sequence& s)
      : s_(s),
        heads_(s.k.size(0)),
        group_(s.q.size(0) / std::max<int64_t>(heads_, 1)),
        places_(s.q.size(1)),
        keys_(s.k.size(1)),
        wide_(wide_of(s.q)),
        q_(rows_of(s.q)),
        k_(s.k.to(wide_).contiguous()),
        v_(s.v.to(s.quantum > 0 ? at::kDouble : wide_).contiguous()) {}

  // [N, S, D] as [K, S G, D], and back.
  Tensor rows_of(const Tensor& x) const {
    return x.to(wide_).unflatten(0, {heads_, group_}).transpose(1, 2).flatten(1, 2).contiguous();
  }
  Tensor heads_of(const Tensor& x) const {
    return x.unflatten(1, {places_, group_}).transpose(1, 2).flatten(0, 1);
  }

  template <class F>
  void for_each(F f) const {
    const int64_t all = places_ * group_;
    if (all == 0 || keys_ == 0) return;
    const int64_t rows =
        std::min(all, std::clamp<int64_t>(kScores / keys_, 1, std::max<int64_t>(256, group_)));
    const int64_t heads = std::clamp<int64_t>(kScores / (rows * keys_), 1, heads_);
    for (int64_t head = 0; head < heads_; head += heads) {
      for (int64_t row = 0; row < all; row += rows) {
        Block b{head, std::min(heads, heads_ - head), row, std::min(rows, all - row), 0, keys_};
        trim(b);
        if (b.keys > 0) f(b);
      }
    }
  }

  Tensor of_rows(const Tensor& x, const Block& b) const {
    return x.narrow(0, b.head, b.heads).narrow(1, b.row, b.rows);
  }
  Tensor of_keys(const Tensor& x, const Block& b) const {
    return x.narrow(0, b.head, b.heads).narrow(1, b.key, b.keys);
  }
  Tensor q(const Block& b) const { return of_rows(q_, b); }
  Tensor k(const Block& b) const { return of_keys(k_, b); }
  Tensor v(const Block& b) const { return of_keys(v_, b); }

  Tensor scores(const Block& b) const;
  Tensor kept(const Block& b) const;
  // One number for each head of q as [K, rows, 1].
  Tensor of_heads(const Tensor& x, const Block& b) const {
    const Tensor grouped = x.to(wide_).reshape({heads_, group_}).narrow(0, b.head, b.heads);
    return grouped.index_select(1, heads_of_rows(b)).unsqueeze(-1);
  }

  Block everything() const { return {0, heads_, 0, rows(), 0, keys_}; }
  at::ScalarType wide() const { return wide_; }
  int64_t heads() const { return heads_; }
  int64_t rows() const { return places_ * group_; }
  int64_t keys() const { return keys_; }

 private:
  Tensor row_numbers(const Block& b) const { return at::arange(b.row, b.row + b.rows); }
  Tensor places_of_rows(const Block& b) const { return at::div(row_numbers(b), group_, "floor"); }
  Tensor heads_of_rows(const Block& b) const { return row_numbers(b).remainder(group_); }

  int64_t first_place(const Block& b) const { return b.row / group_; }
  int64_t last_place(const Block& b) const { return (b.row + b.rows - 1) / group_; }

  // Leaves out the keys that no row of the block sees.
  void trim(Block& b) const {
    const int64_t last = last_place(b) + s_.high;
    const int64_t end = std::max(std::min(keys_, last + 1), std::min(keys_, s_.prefix));
    const int64_t begin = s_.prefix > 0 ? 0 : std::max<int64_t>(0, first_place(b) + s_.low);
    b.key = std::min(begin, keys_);
    b.keys = std::max<int64_t>(0, end - b.key);
  }

  // [N or 1, S or 1, L] at the rows and keys of the block: [heads, rows, keys] or [1, ...].
  Tensor at_block(const Tensor& x, const Block& b) const {
    const Tensor near = x.narrow(-1, b.key, b.keys);
    if (x.size(0) == 1) {
      return x.size(1) == 1 ? near : near.index_select(1, places_of_rows(b));
    }
    const Tensor grouped =
        near.expand({heads_ * group_, places_, b.keys}).unflatten(0, {heads_, group_});
    return at::index(grouped.narrow(0, b.head, b.heads).transpose(1, 2),
                     {std::nullopt, places_of_rows(b), heads_of_rows(b)});
  }

  Tensor chosen(const Block& b) const {
    const Tensor grouped = s_.chosen.unflatten(0, {heads_, group_}).narrow(0, b.head, b.heads);
    const Tensor row = at::div(places_of_rows(b), s_.chosen_rows, "floor");
    const Tensor key = at::div(at::arange(b.key, b.key + b.keys), s_.chosen_keys, "floor");
    return at::index(grouped, {std::nullopt, heads_of_rows(b).unsqueeze(1), row.unsqueeze(1), key});
  }

  Tensor distances(const Block& b) const {
    return at::arange(b.key, b.key + b.keys).unsqueeze(0) - places_of_rows(b).unsqueeze(1);
  }

  Tensor bias(const Block& b) const {
    if (s_.bias.defined()) return at_block(s_.bias, b).to(wide_);
    if (s_.by_distance.defined()) {
      const int64_t width = s_.by_distance.size(1);
      const Tensor place = (distances(b) + width - 1).clamp(0, width - 1);
      const Tensor grouped = s_.by_distance.unflatten(0, {heads_, group_});
      return at::index(grouped.narrow(0, b.head, b.heads),
                       {std::nullopt, heads_of_rows(b).unsqueeze(1), place})
          .to(wide_);
    }
    if (!s_.slopes.defined()) return {};
    const Tensor d = (distances(b) + s_.start).abs().to(wide_);
    return -of_heads(s_.slopes, b) * (s_.root ? d.sqrt() : d);
  }

  const Sequence& s_;
  int64_t heads_, group_, places_, keys_;
  at::ScalarType wide_;
  Tensor q_, k_, v_;
};

// -inf where a key is excluded.
Tensor Blocks::scores(const Block& b) const {
  Tensor x = at::bmm(q(b), k(b).transpose(1, 2));
  const Tensor added = bias(b);
  if (added.defined() && s_.before_scaling) x.add_(added);
  x.mul_(s_.scale);
  if (added.defined() && !s_.before_scaling) x.add_(added);
  if (s_.mask.defined()) x.masked_fill_(at_block(s_.mask, b).to(at::kBool), -INFINITY);
  if (s_.chosen.defined()) x.masked_fill_(chosen(b).logical_not_(), -INFINITY);
  const bool whole =
      b.key - last_place(b) >= s_.low && b.key + b.keys - 1 - first_place(b) <= s_.high;
  if (!whole) {
    const Tensor d = distances(b);
    Tensor outside = (d > s_.high).logical_or_(d < s_.low);
    if (s_.prefix > 0) outside.logical_and_(at::arange(b.key, b.key + b.keys) >= s_.prefix);
    x.masked_fill_(outside, -INFINITY);
  }
  return x;
}

// 1 / keep where the bit of [N, S, L] is set, else 0; undefined without dropout.
Tensor Blocks::kept(const Block& b) const {
  if (!s_.kept.defined()) return {};
  const Tensor made = at::empty({b.heads, b.rows, b.keys}, at::kFloat);
  const auto* bytes = s_.kept.const_data_ptr<uint8_t>();
  auto* to = made.data_ptr<float>();
  const auto factor = static_cast<float>(1 / s_.keep);
  for (int64_t head = b.head; head < b.head + b.heads; ++head) {
    for (int64_t row = b.row; row < b.row + b.rows; ++row) {
      const int64_t n = head * group_ + row % group_, i = row / group_;
      const int64_t first = s_.first_bit + (n * places_ + i) * keys_ + b.key;
      for (int64_t bit = first; bit < first + b.keys; ++bit)
        *to++ = (bytes[bit / 8] >> bit % 8 & 1) != 0 ? factor : 0;
    }
  }
  return made.to(wide_);
}

}  // namespace

Attended attend(const Sequence& s) {
  const Blocks blocks(s);
  const auto options = at::TensorOptions().dtype(blocks.wide());
  const Tensor out = at::zeros({blocks.heads(), blocks.rows(), s.v.size(2)}, options);
  const Tensor largest = at::full({blocks.heads(), blocks.rows(), 1}, kLowest, options);
  const Tensor total = at::zeros({blocks.heads(), blocks.rows(), 1}, options);
  if (s.sink.defined()) {  // rows without keys have it alone
    largest.copy_(blocks.of_heads(s.sink, blocks.everything()));
    total.fill_(1);
  }
  blocks.for_each([&](const Block& b) {
    Tensor x = blocks.scores(b);
    Tensor most = std::get<0>(x.max(-1, true));
    const Tensor sink = s.sink.defined() ? blocks.of_heads(s.sink, b) : Tensor();
    if (sink.defined()) most = at::maximum(most, sink);
    most.clamp_min_(kLowest);
    x.sub_(most).exp_();
    Tensor sum = x.sum(-1, true);
    if (sink.defined()) sum.add_(at::exp(sink - most));
    const Tensor weights = blocks.kept(b);
    if (weights.defined()) x.mul_(weights);
    if (s.quantum > 0) x = (x.mul(s.quantum).round_().clamp_(-128, 127)).to(at::kDouble);
    const Tensor y = at::bmm(x, blocks.v(b)).div_(sum).masked_fill_(sum == 0, 0);
    blocks.of_rows(out, b).copy_(y);
    blocks.of_rows(largest, b).copy_(most);
    blocks.of_rows(total, b).copy_(sum);
  });
  return {blocks.heads_of(out), blocks.heads_of(largest).squeeze(-1),
          blocks.heads_of(total).squeeze(-1)};
}

Gradients differentiate(const Sequence& s, const Tensor& dy, const Tensor& largest,
                        const Tensor& total, const Tensor& products) {
  const Blocks blocks(s);
  const auto options = at::TensorOptions().dtype(blocks.wide());
  const Tensor dq = at::zeros({blocks.heads(), blocks.rows(), s.q.size(2)}, options);
  const Tensor dk = at::zeros(s.k.sizes(), options), dv = at::zeros(s.v.sizes(), options);
  const Tensor g = blocks.rows_of(dy), most = blocks.rows_of(largest.unsqueeze(-1)),
               sum = blocks.rows_of(total.unsqueeze(-1));
  const Tensor sums = products.defined() ? blocks.rows_of(products.unsqueeze(-1))
                                         : at::zeros({blocks.heads(), blocks.rows(), 1}, options);
  blocks.for_each([&](const Block& b) {
    const Tensor its_sum = blocks.of_rows(sum, b), its_g = blocks.of_rows(g, b);
    const Tensor p = blocks.scores(b).sub_(blocks.of_rows(most, b)).exp_().div_(its_sum);
    p.masked_fill_(its_sum <= 0, 0);
    const Tensor dp = at::bmm(its_g, blocks.v(b).transpose(1, 2)), weights = blocks.kept(b);
    if (weights.defined()) dp.mul_(weights);
    Tensor d = blocks.of_rows(sums, b);
    if (!products.defined()) d.copy_((dp * p).sum(-1, true));
    blocks.of_keys(dv, b).add_(
        at::bmm((weights.defined() ? p * weights : p).transpose(1, 2), its_g));
    const Tensor ds = dp.sub_(d).mul_(p).mul_(s.scale);
    blocks.of_rows(dq, b).copy_(at::bmm(ds, blocks.k(b)));
    blocks.of_keys(dk, b).add_(at::bmm(ds.transpose(1, 2), blocks.q(b)));
  });
  Tensor dsink;
  if (s.sink.defined()) {
    const Tensor share = at::exp(s.sink.to(blocks.wide()).unsqueeze(-1) - largest) / total;
    dsink = -(share.masked_fill(total <= 0, 0) * blocks.heads_of(sums).squeeze(-1)).sum(-1);
  }
  return {blocks.heads_of(dq), dk, dv, dsink};
}

}  // namespace openaclnn::aten

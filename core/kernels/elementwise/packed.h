// SPDX-License-Identifier: Apache-2.0
// Runs a formula over packed operands of one type, tile by tile: each tile by the form that its
// values ask for.
#pragma once

#include "core/kernels/elementwise/packed_loops.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// L2 holds a tile together with its inputs. Shorter tiles, of 8 KiB, make the loop begin more
// often: logit_grad fp32, 1 Mi, takes 1.03 times as long.
inline constexpr int64_t kLongTile = 16384;

// Tiles are computed by the quick form alone until it may be wrong for a value. That tile is
// computed again, and it and the next ones group by group, until no group of a tile has such a
// value. If more than a quarter of the groups have one, the next tiles begin with the careful form,
// where there is one: it takes 1.1 to 2 times as long.
enum class Mode : uint8_t { quick, groups, careful };

// A tile that has to be computed again costs twice, so the first ones are short. After so many
// tiles, the careful form is left for a short one.
inline constexpr int64_t kFirstTile = 1024;
inline constexpr int kCarefulTiles = 15;

template <class Type, class F, class Raw, class... In>
void run_tiles(const F& f, Raw* out, int64_t n, bool stream, const In... in) {
  const bool apart = ((out != in) && ...);
  const int64_t longest = apart ? kLongTile : kTile<float>;
  int64_t tile = kFirstTile;
  Mode mode = Mode::quick;
  int careful_tiles = 0;
  Raw other[kTile<float>];
  for (int64_t i = 0, count; i < n; i += count) {
    count = tile < n - i ? tile : n - i;
    tile = 2 * tile < longest ? 2 * tile : longest;
    Raw* const to = apart ? out + i : other;  // computing again needs what `out` holds
    bool past = stream && apart;
    if (mode == Mode::quick && !run_registers_quick<Type>(f, to, count, past, in + i...)) {
      mode = Mode::groups;
      past = false;  // the tile is in the cache
    }
    if (mode != Mode::quick) {
      const bool doubted = mode == Mode::careful;
      const int64_t again = run_groups<Type>(f, to, count, past, doubted, in + i...);
      if (doubted) {
        if (--careful_tiles == 0) mode = Mode::groups, tile = kFirstTile;
      } else if (again == 0) {
        mode = Mode::quick;
      } else if (has_careful<F> && 4 * kGroup * again > count) {
        mode = Mode::careful, careful_tiles = kCarefulTiles;
      }
    }
    if (!apart) std::memcpy(out + i, other, count * sizeof(Raw));
  }
}

template <class F>
struct OneNan {
  static constexpr bool one_nan = true;
  static constexpr int together = registers_together<F>;
  F form;
  template <class... V>
  auto operator()(V... x) const {
    return with_one_nan(form(x...));
  }
};

// Computes tiles by a formula that is right for every value but leaves NaNs of several kinds. After
// a tile with a NaN, the next tiles make each NaN canonical in registers.
template <class Type, class F, class Raw, class... In>
void run_tiles_summed(const F& f, Raw* out, int64_t n, bool stream, const In... in) {
  int64_t tile = kFirstTile;
  int careful_tiles = 0;  // until NaNs are looked for again
  for (int64_t i = 0, count; i < n; i += count) {
    count = tile < n - i ? tile : n - i;
    tile = 2 * tile < kLongTile ? 2 * tile : kLongTile;
    if (careful_tiles > 0) {
      (void)run_registers_summed<Type>(OneNan<F>{f}, out + i, count, stream, in + i...);
      if (--careful_tiles == 0) tile = kFirstTile;
      continue;
    }
    if (run_registers_summed<Type>(f, out + i, count, stream, in + i...)) continue;
    make_canonical<Type>(out + i, count);
    careful_tiles = kCarefulTiles;
  }
}

template <class Type, class F, class Raw, class... In>
void run_packed(const F& f, Raw* out, int64_t n, bool stream, const In... in) {
  if constexpr (requires { f.limit; }) {
    run_tiles<Type>(f, out, n, stream, in...);
  } else if constexpr (in_registers<F, In...>) {
    run_tiles_summed<Type>(f, out, n, stream, in...);
  } else {
    if constexpr (__is_same(Raw, float)) {
      if (!stream) return run(f, out, n, in...);  // straight from memory to memory
    }
    run_blocks<Type>(f, out, n, stream, in...);
  }
}

// The elements before the first cache line of `out` go first.
template <class Type, class F, int inputs, bool takes_same>
void apply_packed(const double* attributes, void* out, const PackedInput* in, int64_t n,
                  bool stream) {
  using Raw = typename Type::Raw;
  auto* to = static_cast<Raw*>(out);
  const int64_t before = (-reinterpret_cast<intptr_t>(out) & 63) / sizeof(Raw);
  const int64_t head = n >= kBlock ? before : 0;  // a whole block may be streamed
  const auto at = [=](int i) { return static_cast<const Raw*>(in[i].data); };
  visit_form<F>(attributes, [&](const auto& f) {
    const auto all = [&](const auto... from) {
      if (head != 0) run_packed<Type>(f, to, head, false, from...);
      run_packed<Type>(f, to + head, n - head, stream, (from + head)...);
    };
    if constexpr (takes_same) {
      if (in[0].same) return all(Same<Raw>{*at(0)}, at(1));
      if (in[1].same) return all(at(0), Same<Raw>{*at(1)});
    }
    if constexpr (inputs == 1) {
      all(at(0));
    } else {
      all(at(0), at(1));
    }
  });
}

// Whether a formula has `quick`, or forms that may have it.
template <class F>
inline constexpr bool may_doubt =
    requires(const F& f) { f.limit; } || requires(const F& f) { f.visit([](const auto&) {}); };

// An input that broadcasting repeats may be one value for all elements; it needs no tiles of
// copies.
template <template <class> class F, int inputs, bool takes_same>
constexpr FormulaEntry formula_entry() {
  static_assert(!takes_same || inputs == 2);
  return {apply<F<Half>, inputs>,
          apply<F<Single>, inputs>,
          apply<F<Double>, inputs>,
          {apply_packed<F32, F<Single>, inputs, takes_same>,
           apply_packed<F16, F<Half>, inputs, takes_same>,
           apply_packed<Bf16, F<Half>, inputs, takes_same>},
          takes_same,
          may_doubt<F<Single>> || may_doubt<F<Half>>};
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA

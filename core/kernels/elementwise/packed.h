// SPDX-License-Identifier: Apache-2.0
// Runs a form over packed operands of one type, tile by tile. The values of a tile decide whether
// its quick, careful or general formula computes it.
#pragma once

#include <cstring>

#include "core/kernels/elementwise/packed_loops.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The most elements of a tile; L2 holds it together with its inputs. Tiles of 2,048 elements make
// the loop begin more often: logit_grad fp32, 1 Mi, takes 1.03 times as long.
inline constexpr int64_t kLongTile = 16384;

// Tiles are computed by the quick formula until it may be wrong for a value. That tile is computed
// again group by group, and so are the tiles after it, until a tile has no group with such a value.
// If more than a quarter of a tile's groups and two more have one, the careful form computes the
// next tiles, if there is one; it takes 1.02 to 2.1 times as long as the quick one, unless results
// are subnormal. If it is `cheap`, it computes that tile again and the next ones, however few
// values are unusual. If the careful form may be wrong too, the mode is `most_careful`: its own
// careful form, or, if it has none, groups of that form and `general` compute that tile and the
// next ones.
enum class Mode : uint8_t { quick, groups, careful, most_careful };

// Computing a tile again doubles its cost, so the first tiles are short. After kCarefulTiles tiles
// with the careful form, the cheaper form is tried again on a short tile.
inline constexpr int64_t kFirstTile = 1024;
inline constexpr int kCarefulTiles = 15;

template <class F>
inline constexpr bool has_cheap_careful = requires(const F& f) { f.careful().cheap; };

template <class Type, class F, class... In>
void run_tiles(const F& f, typename Type::Raw* out, int64_t n, bool stream, const In... in) {
  constexpr Mode after_doubt = has_cheap_careful<F> ? Mode::careful : Mode::groups;
  constexpr Mode after_careful = has_cheap_careful<F> ? Mode::quick : Mode::groups;
  const bool out_of_place = ((out != in.data) && ...);
  const int64_t longest = out_of_place ? kLongTile : kTile<float>;
  int64_t tile = kFirstTile;
  Mode mode = Mode::quick;
  int careful_tiles = kCarefulTiles;
  alignas(64) typename Type::Raw other[kTile<float>];  // for tiles in place, or on their way past
  static_assert(kGroups * kGroup <= kTile<float>);     // the cache
  for (int64_t i = 0, count; i < n; i += count) {
    count = smaller(tile, n - i);
    tile = smaller(2 * tile, longest);
    auto* const to = out_of_place ? out + i : other;  // computing again needs the inputs
    bool non_temporal =
        stream && out_of_place;  // false for a second attempt, which finds the inputs in the cache
    if (mode == Mode::quick &&
        !run_registers_quick<Type>(f, to, count, non_temporal, in.behind(i)...)) {
      mode = after_doubt;
      non_temporal = false;
    }
    if (mode == Mode::groups) {
      if constexpr (!has_cheap_careful<F>) {
        const int64_t again =
            run_groups<Type>(f, to, count, non_temporal, false, other, in.behind(i)...);
        if (again == 0) mode = Mode::quick;
        if (has_careful<F> && 4 * kGroup * (again - 2) > count) mode = Mode::careful;
      }
    } else if (mode != Mode::quick) {
      if constexpr (has_careful<F>) {
        const auto careful = f.careful();
        if (mode == Mode::careful &&
            !run_registers_quick<Type>(careful, to, count, non_temporal, in.behind(i)...)) {
          mode = Mode::most_careful;
          non_temporal = false;
        }
        if (mode == Mode::most_careful) {
          if constexpr (has_careful<decltype(careful)>) {
            static_assert(!has_doubts<decltype(careful.careful())>);
            (void)run_registers_quick<Type>(careful.careful(), to, count, non_temporal,
                                            in.behind(i)...);
          } else if constexpr (has_doubts<decltype(careful)>) {
            static_assert(!has_cheap_careful<F>, "a cheap form needs one that is always right");
            run_groups<Type>(f, to, count, non_temporal, true, other, in.behind(i)...);
          }
        }
      }
      if (--careful_tiles == 0) {
        careful_tiles = kCarefulTiles;
        mode = after_careful;
        tile = kFirstTile;
      }
    }
    if (!out_of_place) std::memcpy(out + i, other, count * sizeof other[0]);
  }
}

template <class F>
struct OneNan {
  static constexpr int unroll = unroll_of<F>;
  F form;
  template <class... V>
  auto operator()(V... x) const {
    return canonical(form(x...));
  }
};

// Computes tiles by a formula that is right for every value but may return other NaNs than the
// canonical one. After a tile with a NaN, the next tiles make each NaN canonical in registers.
template <class Type, class F, class... In>
void run_tiles_summed(const F& f, typename Type::Raw* out, int64_t n, bool stream, const In... in) {
  int64_t tile = kFirstTile;
  int careful_tiles = 0;  // how many more tiles use OneNan
  for (int64_t i = 0, count; i < n; i += count) {
    count = smaller(tile, n - i);
    tile = smaller(2 * tile, kLongTile);
    if (careful_tiles > 0) {
      (void)run_registers_summed<Type>(OneNan<F>{f}, out + i, count, stream, in.behind(i)...);
      if (--careful_tiles == 0) tile = kFirstTile;
      continue;
    }
    if (run_registers_summed<Type>(f, out + i, count, stream, in.behind(i)...)) continue;
    make_canonical<Type>(out + i, count);
    careful_tiles = kCarefulTiles;
  }
}

// A formula that accepts registers runs in them, unless the operands are doubles.
template <class Type, class F, class... In>
concept InRegisters =
    __is_same(typename Type::Computed, float) &&
    requires(const F& f, const In&... in) { f((static_cast<void>(in), FloatRegister{})...); };

template <class Type, class F, class... In>
void run_any(const F& f, typename Type::Raw* out, int64_t n, bool stream, const In... in) {
  if constexpr (requires { f.limit; }) {
    run_tiles<Type>(f, out, n, stream, in...);
  } else if constexpr (InRegisters<Type, F, In...>) {
    run_tiles_summed<Type>(f, out, n, stream, in...);
  } else {
    run_blocks<Type>(f, out, n, stream, in...);
  }
}

// A store that crosses the end of a cache line takes two cycles, and parts of registers at both
// ends of a row 40 ns: rows of this size or more begin at a line. (256 rows of 256 fp32 values, 16
// bytes behind a line, would take 20 us instead of 9.)
inline constexpr int64_t kLongBytes = 8192;

// A PackedLoop. In long rows the elements before the first whole cache line of `out` are computed
// first; non-temporal stores write whole lines.
template <class Type, class Form, int inputs>
void run_packed(const void* form, void* out, const PackedInput* in, int64_t n, bool stream) {
  static_assert(inputs <= kMaxInputs);
  using Raw = typename Type::Raw;
  const Form& f = *static_cast<const Form*>(form);
  auto* const to = static_cast<Raw*>(out);
  const int64_t before = (-reinterpret_cast<intptr_t>(out) & 63) / sizeof(Raw);
  const bool align = (stream && n >= kBlock) || n * int64_t{sizeof(Raw)} >= kLongBytes;
  const int64_t head = align ? before : 0;
  alignas(64) Raw repeated[inputs][kRepeated];
  const auto source = [&](int i) -> Source<Raw> {
    const auto* const data = static_cast<const Raw*>(in[i].data);
    if (!in[i].same) return {data};
    for (Raw& value : repeated[i]) value = *data;
    return {repeated[i], 0};
  };
  const auto run = [&](const auto... from) {
    if (head != 0) run_any<Type>(f, to, head, false, from...);
    run_any<Type>(f, to + head, n - head, stream, from.behind(head)...);
  };
  if constexpr (inputs == 1) {
    run(source(0));
  } else {
    run(source(0), source(1));
  }
}

template <class F, int inputs, class... Types>
void choose_form_of(const double* attributes, Element type, ChosenForm& to) {
  visit_form<F>(attributes, [&]<class Form>(const Form& form) {
    static_assert(sizeof form <= sizeof to.form && alignof(Form) <= 16 &&
                  __is_trivially_copyable(Form));
    std::memcpy(to.form, &form, sizeof form);
    ((type == Types::kElement ? void(to.loop = run_packed<Types, Form, inputs>) : void()), ...);
    to.doubts = requires { form.limit; };
  });
}

// A ChooseForm.
template <template <class> class F, int inputs>
void choose_form(const double* attributes, Element type, ChosenForm& to) {
  switch (type) {
    case Element::f32: return choose_form_of<F<Single>, inputs, F32>(attributes, type, to);
    case Element::f64: return choose_form_of<F<Double>, inputs, F64>(attributes, type, to);
    default: return choose_form_of<F<Half>, inputs, F16, Bf16>(attributes, type, to);
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA

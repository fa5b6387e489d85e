// SPDX-License-Identifier: Apache-2.0
// Values of the row's named sizes, from the tensors of one call.
#pragma once

#include <array>
#include <optional>

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

class Sizes {
 public:
  explicit Sizes(const Call& call) : call_(call) {}

  // Checks a shape, or the length of a list, and assigns names that have no value yet. Throws
  // Refusal.
  void check(const Parameter& parameter, at::IntArrayRef got);
  // The product of the factors; nullopt if a tensor that defines one is missing.
  std::optional<int64_t> product(const Size* factors, int count) const;

 private:
  static constexpr size_t kNames = 16;  // src/openaclnn/aten/source.py refuses more

  struct Named {
    int64_t size = -1;
    bool missing = false;         // an optional dim that the first tensor did not have
    const char* where = nullptr;  // the parameter that gave it
  };
  // A wanted dim, or any number of dims.
  struct Wanted {
    const Size* from;
    std::optional<int64_t> size;
    bool rest = false;
  };

  std::vector<Wanted> wanted(const Limits& limits) const;
  std::vector<int64_t> values_of(const Size& size) const;  // what append_value appends
  bool is_missing(const Size& size) const;  // an optional dim that the first tensor did not have
  bool append_value(const Size& size, std::vector<Wanted>* to) const;
  bool fits(const Parameter& parameter, const std::vector<Wanted>& wanted, at::IntArrayRef got);
  bool take(const Parameter& parameter, const Wanted& wanted, int64_t got);
  void take_rest(const Parameter& parameter, const Wanted& wanted, at::IntArrayRef got);
  [[noreturn]] void refuse(const Parameter& parameter, at::IntArrayRef got) const;

  const Call& call_;
  std::array<Named, kNames> named_{};
  std::optional<std::vector<int64_t>> rest_;
  const char* rest_where_ = nullptr;
};

}  // namespace openaclnn::aten

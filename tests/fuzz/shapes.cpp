// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace fuzz {
namespace {

// Inputs of dims that are the common ones or 1, some without leading dims; outputs of all they
// span.
void broadcast_shapes(Random& random, const Row& row, const Dims& base, std::vector<Dims>& shapes) {
  Dims span;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (row.parameters[i].role != Role::input) continue;
    const auto dropped = random.chance(20) ? random.below(base.size() + 1) : 0;
    shapes[i].assign(base.begin() + static_cast<long>(dropped), base.end());
    for (int64_t& d : shapes[i]) d = random.chance(15) ? 1 : d;
    Dims own = shapes[i];
    const size_t rank = std::max(own.size(), span.size());
    own.insert(own.begin(), rank - own.size(), 1);
    span.insert(span.begin(), rank - span.size(), 1);
    for (size_t d = 0; d < rank; ++d) span[d] = own[d] == 1 ? span[d] : own[d];
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (row.parameters[i].role == Role::output) shapes[i] = span;
  }
}

// x and what has its shape (N, C, ...); channels (C); statistics (N, groups).
void group_norm_shapes(Random& random, const Row& row, std::vector<Dims>& shapes) {
  const int64_t samples = random.between(1, 3), groups = random.between(1, 4);
  const int64_t channels = groups * random.between(1, random.chance(10) ? 40 : 4);
  Dims x = {samples, channels};
  for (uint64_t more = random.below(4); more > 0; --more) x.push_back(random.between(1, 5));
  if (x.size() > 2 && random.chance(10)) x[2] = random.between(1, 300);
  if (product(x) > 9000) x.resize(2);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = row.parameters[i].name;
    const auto begins = [&name](const char* word) { return name.rfind(word, 0) == 0; };
    shapes[i] = x;
    if (begins("gamma") || begins("beta") || begins("dgamma") || begins("dbeta")) {
      shapes[i] = {channels};
    }
    if (begins("mean") || begins("rstd")) shapes[i] = {samples, groups};
  }
}

bool is_group_norm(const Row& row) { return std::strcmp(row.family, "group_norm") == 0; }

}  // namespace

bool good_shapes(Random& random, const Row& row, std::vector<Dims>& shapes) {
  if (is_group_norm(row)) {
    group_norm_shapes(random, row, shapes);
    return true;
  }
  const Dims base = random_shape(random);
  std::fill(shapes.begin(), shapes.end(), base);
  if (row.broadcast && random.chance(60)) broadcast_shapes(random, row, base, shapes);
  return std::strcmp(row.family, "elementwise") == 0;
}

double good_real(Random& random, const Row& row) {
  const auto positive = static_cast<double>(random.between(1, 32)) / 64;
  if (is_group_norm(row)) return positive;
  return random.chance(40) ? -random.between(0, 1) : positive;
}

int64_t good_integer(Random& random, const Row& row, const std::vector<Given>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool statistics = std::strncmp(row.parameters[i].name, "mean", 4) == 0;
    if (statistics) return tensors[i].shape.back();
  }
  return random.between(1, 4);
}

}  // namespace fuzz

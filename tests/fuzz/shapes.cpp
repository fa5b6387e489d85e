// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

namespace fuzz {
namespace {

// Inputs have the common dims or 1, some without leading dims; outputs have all dims.
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

// One value for each named size, some of which are multiples of others. The dimensions that follow
// are the same for all tensors.
void named_shapes(Random& random, const Row& row, std::vector<Dims>& shapes) {
  std::map<std::string, int64_t> sizes;
  for (const Size& size : row.sizes) {
    const int64_t most = random.chance(10) ? 40 : 4;
    sizes[size.name] = size.divisor == nullptr ? random.between(1, 4)
                                               : sizes[size.divisor] * random.between(1, most);
  }
  Dims rest;
  for (uint64_t more = random.below(4); more > 0; --more) rest.push_back(random.between(1, 5));
  if (!rest.empty() && random.chance(10)) rest[0] = random.between(1, 300);
  const auto of = [&](const Parameter& parameter) {
    Dims shape;
    for (const char* size : parameter.sizes) shape.push_back(sizes[size]);
    if (parameter.rest) shape.insert(shape.end(), rest.begin(), rest.end());
    return shape;
  };
  for (const Parameter& parameter : row.parameters) {
    if (product(of(parameter)) > 9000) rest.clear();
  }
  for (size_t i = 0; i < shapes.size(); ++i) shapes[i] = of(row.parameters[i]);
}

}  // namespace

void good_shapes(Random& random, const Row& row, std::vector<Dims>& shapes) {
  if (!row.sizes.empty()) return named_shapes(random, row, shapes);
  const Dims base = random_shape(random);
  std::fill(shapes.begin(), shapes.end(), base);
  if (row.broadcast && random.chance(60)) broadcast_shapes(random, row, base, shapes);
}

int64_t good_integer(Random& random, const Row& row, const char* attribute,
                     const std::vector<Given>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<const char*>& sizes = row.parameters[i].sizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (std::strcmp(sizes[d], attribute) == 0) return tensors[i].shape[d];
    }
  }
  return random.between(1, 4);
}

}  // namespace fuzz

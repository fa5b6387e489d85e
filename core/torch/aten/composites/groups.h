// SPDX-License-Identifier: Apache-2.0
// Groups of rows, one after the other: what grouped products and grouped quantisation share.
#pragma once

#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {

struct Slice {
  int64_t group, begin, end;
};

// Kinds of lists.
constexpr int64_t kEnds = 0, kCounts = 1, kPairs = 2;  // pairs: (group, count)

// The groups that have rows. Rows that do not exist are left out. Without data (phase 1) each group
// has all rows.
inline std::vector<Slice> slices(const Tensor& list, int64_t kind, int64_t groups, int64_t rows,
                                 const char* name = "groupList") {
  check_given(list, name);
  require(at::isIntegralType(list.scalar_type(), false), name, " must have integers, but is ",
          list.scalar_type());
  require(kind == kEnds || kind == kCounts || kind == kPairs,
          "groupListType must be 0, ends, 1, counts, or 2, pairs, but got ", kind);
  if (kind == kPairs)
    require_shape(list.dim() == 2 && list.size(1) == 2, name, " must have shape [groups, 2], but ",
                  "got ", list.sizes());
  else
    check_shape(list, name, {groups});
  std::vector<Slice> found;
  if (list.is_meta()) {
    for (int64_t g = 0; g < groups; ++g) found.push_back({g, 0, rows});
    return found;
  }
  const Tensor dense = list.to(at::kLong).contiguous();
  const auto* number = dense.const_data_ptr<int64_t>();
  const int64_t count = kind == kPairs ? list.size(0) : groups;
  int64_t begin = 0, last = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t group = kind == kPairs ? number[2 * i] : i;
    require(group >= 0 && group < groups, name, " must have groups from 0 to ", groups - 1,
            ", but has ", group);
    int64_t more = kind == kPairs ? number[2 * i + 1] : number[i];
    if (kind == kEnds) {
      require(more >= last, name, " must ascend, but goes from ", last, " to ", more);
      const int64_t end = more;
      more -= last;
      last = end;
    }
    require(more >= 0, name, " must have counts from 0, but has ", more);
    const int64_t end = begin + std::min(more, rows - begin);
    if (end > begin) found.push_back({group, begin, end});
    begin = end;
  }
  return found;
}

// The rows after the last group.
inline int64_t end_of(const std::vector<Slice>& found) {
  return found.empty() ? 0 : found.back().end;
}

// For each of the rows its group; -1 after the last one.
inline Tensor groups_of_rows(const std::vector<Slice>& found, int64_t rows, const Tensor& like) {
  if (like.is_meta()) return at::empty({rows}, like.options().dtype(at::kLong));
  const Tensor made = at::full({rows}, -1, at::kLong);
  auto* to = made.data_ptr<int64_t>();
  for (const Slice& s : found) std::fill(to + s.begin, to + s.end, s.group);
  return made;
}

// A row of the parameter for each row, by its group; those after the last group get the first.
inline Tensor by_row(const Tensor& parameter, const Tensor& group_of_row) {
  return select_rows(parameter, at::clamp_min(group_of_row, 0));
}

}  // namespace openaclnn::aten

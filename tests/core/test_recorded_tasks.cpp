// SPDX-License-Identifier: Apache-2.0
// Who numbers what graphs record learns when the last task with a number is gone.
#include <vector>

#include "core/runtime/work_listener.h"
#include "graphs.h"

namespace {

std::vector<uint64_t> ended;

void record(aclrtStream stream, uint64_t number, float* x, float* y, int times) {
  openaclnn_record_as(number, [](uint64_t gone) { ended.push_back(gone); });
  for (int i = 0; i < times; ++i) CHECK_EQ(leaky(x, y, 8, 0.5f, stream), 0);
  openaclnn_record_as(0, nullptr);
}

void numbers_end_with_the_graph() {
  Fixture f;
  begin(f.stream);
  record(f.stream, 7, f.x, f.y, 2);
  record(f.stream, 8, f.x, f.y, 1);
  aclmdlRI graph = end(f.stream);
  begin(f.stream);
  record(f.stream, 9, f.x, f.y, 1);
  aclmdlRI other = end(f.stream);
  replay(graph, f.stream);
  replay(graph, f.stream);
  CHECK(ended.empty());
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  CHECK(ended == std::vector<uint64_t>({7, 8}));
  CHECK_EQ(aclmdlRIDestroy(other), 0);
  CHECK(ended == std::vector<uint64_t>({7, 8, 9}));
}

void a_number_without_tasks_ends_at_once() {
  ended.clear();
  openaclnn_record_as(5, [](uint64_t gone) { ended.push_back(gone); });
  openaclnn_record_as(6, [](uint64_t gone) { ended.push_back(gone); });
  CHECK(ended == std::vector<uint64_t>({5}));
  openaclnn_record_as(0, nullptr);
  CHECK(ended == std::vector<uint64_t>({5, 6}));
}

}  // namespace

int main() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  numbers_end_with_the_graph();
  a_number_without_tasks_ends_at_once();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}

// SPDX-License-Identifier: Apache-2.0
// Memory that a program frees, unmaps or releases although a graph uses it: replays still have it,
// the process lives, and with the graph it is gone. Memory of later is gone at once. Runs under the
// sanitizers too.
#include <cstring>

#include "graphs.h"
#include "memory_pages.h"
#include "virtual_memory.h"

namespace {

constexpr int64_t kCount = kLarge / sizeof(float);

// Its pages are the system's again; the sanitizers' allocators keep them for a while.
void check_gone(const void* address) {
  if (!kAllocatorKeeps) CHECK(!is_there(address));
}

// y = 0.5 x, in a graph.
aclmdlRI halved(float* x, float* y, int64_t count, aclrtStream stream) {
  begin(stream);
  CHECK_EQ(leaky(x, y, count, 0.5f, stream), 0);
  return end(stream);
}

void destroy(aclmdlRI graph) { CHECK_EQ(aclmdlRIDestroy(graph), 0); }
void free_all(std::vector<float*> all) {
  for (float* p : all) CHECK_EQ(aclrtFree(p), 0);
}

// An operator and a copy read the freed memory, a fill writes it, and nothing else gets it.
void replayed(aclrtStream stream, int64_t count) {
  const size_t size = static_cast<size_t>(count) * sizeof(float);
  float *x = floats(static_cast<size_t>(count), -4), *y = floats(static_cast<size_t>(count));
  float* copy = floats(static_cast<size_t>(count));
  begin(stream);
  CHECK_EQ(leaky(x, y, count, 0.5f, stream), 0);
  CHECK_EQ(aclrtMemcpyAsync(copy, size, x, size, ACL_MEMCPY_DEFAULT, stream), 0);
  CHECK_EQ(aclrtMemsetAsync(x, size, 0, size, stream), 0);
  aclmdlRI graph = end(stream);
  CHECK_EQ(aclrtFree(x), 0);
  CHECK_FAILS(aclrtFree(x), 107000, "is not the start of an allocation");
  float* other = floats(static_cast<size_t>(count), 7);
  CHECK(other != x);
  replay(graph, stream);
  for (const int64_t i : {int64_t{0}, count - 1}) {
    CHECK_EQ(y[i], -2.0f);
    CHECK_EQ(copy[i], -4.0f);
    CHECK_EQ(other[i], 7.0f);
  }
  replay(graph, stream);
  CHECK_EQ(copy[count - 1], 0.0f);
  free_all({y, copy, other});  // and the outputs
  replay(graph, stream);
  destroy(graph);
  if (count == kCount) check_gone(x), check_gone(y);
}

// Freed during the capture, and by one of two graphs.
void two_graphs(aclrtStream stream) {
  float *x = floats(kCount, -4), *y = floats(kCount);
  aclmdlRI first = halved(x, y, kCount, stream);
  begin(stream);
  CHECK_EQ(leaky(x, y, kCount, 2, stream), 0);
  CHECK_EQ(aclrtFree(x), 0);
  aclmdlRI second = end(stream);
  replay(second, stream);
  CHECK_EQ(y[kCount - 1], -8.0f);
  destroy(second);
  replay(first, stream);
  CHECK_EQ(y[kCount - 1], -2.0f);
  destroy(first);
  check_gone(x);
  CHECK_EQ(aclrtFree(y), 0);
}

// A graph keeps nothing that was allocated after its last task, so its life costs no memory.
void later(aclrtStream stream) {
  float *x = floats(8, -4), *y = floats(8);
  aclmdlRI graph = halved(x, y, 8, stream);
  for (int i = 0; i < 3; ++i) {
    float* other = floats(kCount, 1);
    CHECK_EQ(leaky(other, other, kCount, 1, stream), 0);
    CHECK_EQ(aclrtSynchronizeStream(stream), 0);
    CHECK_EQ(aclrtFree(other), 0);
    check_gone(other);
    replay(graph, stream);
  }
  destroy(graph);
  free_all({x, y});
}

// The new tasks of a group use memory of later.
void updated(aclrtStream stream) {
  aclrtStream update = new_stream();
  float *x = floats(8, -4), *y = floats(8), *early = floats(kCount, -2);
  aclrtTaskGrp group = nullptr;
  begin(stream);
  CHECK_EQ(aclmdlRICaptureTaskGrpBegin(stream), 0);
  CHECK_EQ(leaky(x, y, 8, 0.5f, stream), 0);
  CHECK_EQ(aclmdlRICaptureTaskGrpEnd(stream, &group), 0);
  aclmdlRI graph = end(stream);
  float* late = floats(kCount, -6);
  for (float* input : {early, late}) {
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), 0);
    CHECK_EQ(leaky(input, input, kCount, 0.5f, update), 0);
    CHECK_EQ(aclrtFree(input), 0);
    CHECK_EQ(aclmdlRICaptureTaskUpdateEnd(update), 0);
    CHECK_EQ(aclrtSynchronizeStream(update), 0);
    replay(graph, stream);
    CHECK_EQ(input[kCount - 1], input == early ? -1.0f : -3.0f);
  }
  destroy(graph);
  check_gone(early), check_gone(late);
  free_all({x, y});
  CHECK_EQ(aclrtDestroyStream(update), 0);
}

// A part of a condition, which ends with the graph and may be captured again.
void in_a_part(aclrtStream stream) {
  aclrtStream other = new_stream();
  float *x = floats(kCount, -4), *y = floats(kCount);
  const Condition condition(stream);
  condition.capture(other);
  CHECK_EQ(leaky(x, y, kCount, 0.5f, other), 0);
  CHECK_EQ(end(other), condition.part);
  aclmdlRI graph = end(stream);
  CHECK_EQ(aclrtFree(x), 0);
  replay(graph, stream);
  CHECK_EQ(y[kCount - 1], -2.0f);
  destroy(graph);
  check_gone(x);
  CHECK_EQ(aclrtFree(y), 0);
  CHECK_EQ(aclrtDestroyStream(other), 0);
}

// Mapped memory, also where other memory is mapped afterwards.
void mapped(aclrtStream stream) {
  constexpr size_t kSize = 2 * kGranule;
  char* base = reserve(kSize);
  const aclrtDrvMemHandle first = physical(kSize), second = physical(kGranule);
  CHECK_EQ(aclrtMapMem(base, kSize, 0, first, 0), 0);
  begin(stream);
  CHECK_EQ(aclrtMemsetAsync(base, kSize, 6, kSize, stream), 0);
  aclmdlRI graph = end(stream);
  CHECK_EQ(aclrtUnmapMem(base), 0);
  CHECK_EQ(aclrtFreePhysical(first), 0);
  replay(graph, stream);
  CHECK_EQ(aclrtMapMem(base, kGranule, 0, second, 0), 0);
  replay(graph, stream);
  CHECK_EQ(first_byte(base), 6);
  CHECK_EQ(aclrtUnmapMem(base), 0);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  replay(graph, stream);
  destroy(graph);
  CHECK(!is_there(base));
  CHECK_EQ(aclrtFreePhysical(second), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  aclrtStream stream = new_stream();
  in_each_mode([&] {
    replayed(stream, kCount);
    replayed(stream, 64);
    two_graphs(stream);
    later(stream);
    updated(stream);
    in_a_part(stream);
    mapped(stream);
  });
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}

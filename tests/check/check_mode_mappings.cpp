// SPDX-License-Identifier: Apache-2.0
// Makes a mistake with reserved addresses or mapped memory; the argument names it.
// tests/check/test_mappings.py knows what is reported for each.
#include <map>
#include <string>
#include <vector>

#include "../../examples/mistakes/mistake.h"

namespace {

constexpr size_t kGranule = size_t{2} << 20;

aclrtDrvMemHandle physical(size_t count = 1) {
  aclrtPhysicalMemProp prop = {};
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtDrvMemHandle handle = nullptr;
  must(aclrtMallocPhysical(&handle, count * kGranule, &prop, 0));
  return handle;
}

// Eight granules of addresses, the first three mapped: one of `first`, two of `second`.
struct Range {
  Range() {
    void* begin = nullptr;
    must(aclrtReserveMemAddress(&begin, 8 * kGranule, 0, nullptr, 1));
    base = static_cast<char*>(begin);
    must(aclrtMapMem(base, kGranule, 0, first, 0));
    must(aclrtMapMem(base + kGranule, 2 * kGranule, 0, second, 0));
    must(aclrtMemset(base, 3 * kGranule, 0, 3 * kGranule));
  }
  void end() {
    must(aclrtUnmapMem(base));
    must(aclrtUnmapMem(base + kGranule));
    must(aclrtFreePhysical(first));
    must(aclrtFreePhysical(second));
    must(aclrtReleaseMemAddress(base));
  }
  char* base;
  aclrtDrvMemHandle first = physical(), second = physical(2);
};

int in_place(void* memory, aclrtStream stream, int64_t length = kLength) {
  aclTensor* self = tensor(memory, length);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnInplaceLeakyReluGetWorkspaceSize(self, slope, &size, &executor));
  const int status = aclnnInplaceLeakyRelu(nullptr, size, executor, stream);
  if (status != 0) must(aclDestroyAclOpExecutor(executor));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  return status;
}

void refused(int status, int expected) {
  if (status == expected) return;
  std::printf("%d instead of %d\n", status, expected);
  std::exit(1);
}

// ---- nothing wrong ----

void right() {
  Range range;
  aclrtStream one = make_stream(), two = make_stream();
  char* border = range.base + kGranule - kBytes / 2;
  must(in_place(border, one));
  must(aclrtMemsetAsync(range.base, kGranule / 2, 1, kGranule / 2, two));  // other bytes
  must(aclrtSynchronizeStream(one));
  must(aclrtSynchronizeStream(two));
  std::vector<char> host(3 * kGranule);
  must(aclrtMemcpy(host.data(), host.size(), range.base, host.size(), ACL_MEMCPY_DEVICE_TO_HOST));
  // Again elsewhere, and other memory in the same place while work of the past was waited for.
  must(in_place(range.base, one));
  must(aclrtSynchronizeStream(one));
  must(aclrtUnmapMem(range.base));
  must(aclrtMapMem(range.base + 5 * kGranule, kGranule, 0, range.first, 0));
  must(aclrtFreePhysical(range.first));  // its memory stays until it is unmapped
  must(in_place(range.base + 5 * kGranule, two));
  must(aclrtSynchronizeStream(two));
  must(aclrtUnmapMem(range.base + 5 * kGranule));
  range.first = physical();
  must(aclrtMapMem(range.base, kGranule, 0, range.first, 0));
  must(aclrtMemset(range.base, kGranule, 0, kGranule));
  must(in_place(range.base, one));
  must(aclrtSynchronizeStream(one));
  must(aclrtDestroyStream(one));
  must(aclrtDestroyStream(two));
  range.end();
}

// ---- addresses where nothing is ----

void read_reserved() {
  Range range;
  volatile char* x = range.base;
  (void)x[4 * kGranule];
}

void read_mapped() {
  Range range;
  volatile char* x = range.base;
  (void)x[kGranule + 5];
}

void read_unmapped() {
  Range range;
  must(aclrtUnmapMem(range.base + kGranule));
  volatile char* x = range.base;
  (void)x[kGranule + 5];
}

void operator_on_reserved() {
  Range range;
  refused(in_place(range.base + 3 * kGranule, nullptr), 161002);
  range.end();
}

void workspace_on_reserved() {
  Range range;
  {
    GroupNormSwishGrad work;
    refused(aclnnGroupNormSwishGrad(range.base + 3 * kGranule, work.workspace_size, work.executor,
                                    nullptr),
            161002);
    must(aclDestroyAclOpExecutor(work.executor));
  }
  range.end();
}

void operator_on_unmapped() {
  Range range;
  must(aclrtUnmapMem(range.base));
  refused(in_place(range.base, nullptr), 161002);
  must(aclrtMapMem(range.base, kGranule, 0, range.first, 0));
  range.end();
}

void operator_past_mapping() {
  Range range;
  refused(in_place(range.base + 3 * kGranule - 400, nullptr), 161002);
  range.end();
}

void copy_past_mapping() {
  Range range;
  refused(aclrtMemset(range.base + kGranule - 8, SIZE_MAX, 0, 2 * kGranule + 9), 107000);
  range.end();
}

void copy_to_released() {
  Range range;
  range.end();
  refused(aclrtMemset(range.base + 7 * kGranule, 1, 0, 1), 107000);
}

// ---- endings ----

void unmap_in_use() {
  Range range;
  aclrtStream stream = make_stream();
  must(in_place(range.base, stream));
  must(aclrtUnmapMem(range.base));
  must(aclrtMapMem(range.base, kGranule, 0, range.first, 0));
  must(aclrtSynchronizeStream(stream));
  must(aclrtDestroyStream(stream));
  range.end();
}

void wrong_ends() {
  Range range;
  refused(aclrtUnmapMem(range.base + kGranule + 64), 107000);
  refused(aclrtUnmapMem(range.base + 5 * kGranule), 107000);
  refused(aclrtFree(range.base), 107000);
  refused(aclrtReleaseMemAddress(range.base + kGranule), 107000);
  float* x = device_memory(kBytes);
  refused(aclrtUnmapMem(x), 107000);
  refused(aclrtReleaseMemAddress(&range), 107000);
  must(aclrtFree(x));
  range.end();
}

void twice() {
  Range range;
  must(aclrtUnmapMem(range.base));
  refused(aclrtUnmapMem(range.base), 107000);
  must(aclrtUnmapMem(range.base + kGranule));
  must(aclrtFreePhysical(range.second));
  must(aclrtFreePhysical(range.first));
  refused(aclrtFreePhysical(range.first), 107017);
  refused(aclrtMapMem(range.base, kGranule, 0, range.first, 0), 107017);
  must(aclrtReleaseMemAddress(range.base));
  refused(aclrtReleaseMemAddress(range.base), 107000);
}

void leaks() {
  Range range;
  must(aclrtUnmapMem(range.base + kGranule));
  must(aclrtFreePhysical(range.second));
}

// Work on two streams that meets behind the border of two mappings.
void not_in_order() {
  Range range;
  aclrtStream one = make_stream(), two = make_stream();
  must(in_place(range.base + kGranule - kBytes / 2, one));
  must(aclrtMemsetAsync(range.base + kGranule, 4, 0, 4, two));
  must(aclrtSynchronizeStream(one));
  must(aclrtSynchronizeStream(two));
  must(aclrtDestroyStream(one));
  must(aclrtDestroyStream(two));
  range.end();
}

// ---- graphs ----

// A graph of an operator on the last bytes of the first mapping and the first of the second, and of
// a fill of the second.
struct Recorded : Range {
  Recorded() {
    aclrtStream stream = make_stream();
    must(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    must(in_place(base + kGranule - kBytes / 2, stream));
    must(aclrtMemsetAsync(base + kGranule, kGranule, 0, kGranule, stream));
    must(aclmdlRICaptureEnd(stream, &graph));
    must(aclrtDestroyStream(stream));
    replay();
  }
  void replay() const { must(aclmdlRIExecute(graph, -1)); }
  void end() {
    must(aclmdlRIDestroy(graph));
    must(aclrtFreePhysical(first));
    must(aclrtFreePhysical(second));
  }
  aclmdlRI graph = nullptr;
};

void replay_of_unmapped() {
  Recorded range;
  must(aclrtUnmapMem(range.base + kGranule));
  range.replay();
  must(aclrtUnmapMem(range.base));
  must(aclrtReleaseMemAddress(range.base));
  range.end();
}

void replay_of_released() {
  Recorded range;
  must(aclrtUnmapMem(range.base));
  must(aclrtUnmapMem(range.base + kGranule));
  must(aclrtReleaseMemAddress(range.base));
  range.replay();
  range.end();
}

// Other memory has the addresses: right.
void replay_of_mapped_again() {
  Recorded range;
  must(aclrtUnmapMem(range.base + kGranule));
  must(aclrtMapMem(range.base + kGranule, 2 * kGranule, 0, range.second, 0));
  must(aclrtMemset(range.base + kGranule, kGranule, 0, kGranule));
  range.replay();
  must(aclmdlRIDestroy(range.graph));
  range.Range::end();
}

const std::map<std::string, void (*)()> cases = {
    {"right", right},
    {"read_reserved", read_reserved},
    {"read_mapped", read_mapped},
    {"read_unmapped", read_unmapped},
    {"operator_on_reserved", operator_on_reserved},
    {"workspace_on_reserved", workspace_on_reserved},
    {"operator_on_unmapped", operator_on_unmapped},
    {"operator_past_mapping", operator_past_mapping},
    {"copy_past_mapping", copy_past_mapping},
    {"copy_to_released", copy_to_released},
    {"unmap_in_use", unmap_in_use},
    {"wrong_ends", wrong_ends},
    {"twice", twice},
    {"leaks", leaks},
    {"not_in_order", not_in_order},
    {"replay_of_unmapped", replay_of_unmapped},
    {"replay_of_released", replay_of_released},
    {"replay_of_mapped_again", replay_of_mapped_again},
};

}  // namespace

int main(int, char** words) {
  begin();
  cases.at(words[1])();
  end();
  return 0;
}

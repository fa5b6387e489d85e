// SPDX-License-Identifier: Apache-2.0
// What tests of models that a program builds share.
#pragma once

#include <cstring>
#include <vector>

#include "graphs.h"

inline aclrtStream held_stream() {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_PERSISTENT), 0);
  return stream;
}

template <class T>
T* numbers(std::vector<T> values) {
  void* p = nullptr;
  const size_t bytes = values.size() * sizeof(T);
  CHECK_EQ(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  std::memcpy(p, values.data(), bytes);
  return static_cast<T*>(p);
}

inline void add_one(void* value) { *static_cast<int*>(value) += 1; }

inline void add(aclrtStream stream, int* count) {
  CHECK_EQ(aclrtLaunchHostFunc(stream, add_one, count), 0);
}

// A model of streams; the first is the head.
struct Model {
  aclmdlRI model = nullptr;
  std::vector<aclrtStream> streams;

  explicit Model(size_t count) {
    CHECK_EQ(aclmdlRIBuildBegin(&model, 0), 0);
    for (size_t i = 0; i < count; ++i) {
      streams.push_back(held_stream());
      const uint32_t flag = i == 0 ? ACL_MODEL_STREAM_FLAG_HEAD : ACL_MODEL_STREAM_FLAG_DEFAULT;
      CHECK_EQ(aclmdlRIBindStream(model, streams[i], flag), 0);
    }
  }
  void built() {
    for (aclrtStream stream : streams) CHECK_EQ(aclmdlRIEndTask(model, stream), 0);
    CHECK_EQ(aclmdlRIBuildEnd(model, nullptr), 0);
  }
  void run() { CHECK_EQ(aclmdlRIExecute(model, -1), 0); }
  ~Model() {
    for (aclrtStream stream : streams) {
      CHECK_EQ(aclmdlRIUnbindStream(model, stream), 0);
      CHECK_EQ(aclrtDestroyStream(stream), 0);
    }
    CHECK_EQ(aclmdlRIDestroy(model), 0);
  }
};

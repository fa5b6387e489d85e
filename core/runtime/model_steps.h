// SPDX-License-Identifier: Apache-2.0
// What directs the streams of a built model. A run goes through its streams by turns: of those that
// are active, the task that was submitted first is next. So a task that waits for an earlier one of
// another stream finds it done, as in a capture.
#pragma once

#include <cstdint>
#include <vector>

#include "core/runtime/graph.h"
#include "core/runtime/stream.h"

namespace openaclnn {

struct ModelStep {
  enum class Kind : uint8_t {
    end,     // of the stream
    label,   // a place; target: its number
    jump,    // to label *left of `labels`
    start,   // stream `target`
    branch,  // to stream `target`, where *left is so to *right
  } kind;
  uint32_t target = 0;
  std::vector<uint32_t> labels = {};
  const void *left = nullptr, *right = nullptr;  // device memory
  int condition = 0;                             // aclrtCondition
  bool is_int64 = false;
};

// In a task of the stream.
void run_model(const NodeList& nodes, const std::vector<bool>& heads, Stream& stream);

// Appends the step to the model of the stream; `next`, if not NULL, is its target.
Status add_step(const char* call, const void* stream, ModelStep step, const void* next = nullptr);

}  // namespace openaclnn

// SPDX-License-Identifier: Apache-2.0
// The call stack of the program at a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace openaclnn::check {

struct Stack {
  static constexpr int kFrames = 10;
  int count = 0;
  void* frame[kFrames];  // return addresses, innermost first, without those of this library

  const char* entry = nullptr;  // the public function that was called, where it is known

  uint64_t hash() const {  // a hash
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < count; ++i) {
      hash = (hash ^ reinterpret_cast<uintptr_t>(frame[i])) * 1099511628211u;
    }
    return hash;
  }
};

void prepare_stacks();  // once, outside signal handlers: the unwinder is loaded at its first use

// Captures the stack of the calling thread.
Stack stack_here();
// Captures the stack from the interrupted instruction on, for signal handlers.
Stack stack_of_fault(void* context);

inline bool is_public_name(std::string_view name) {
  return name.starts_with("acl") || name.starts_with("Hccl");
}

// Whether the innermost frame is in a library whose file name begins so.
bool is_called_from(const Stack& stack, const char* library);

struct Frame {
  char function[160];  // "" when unknown
  char file[256];      // "" when unknown
  int line;
  char module[256];
  uintptr_t offset;  // in the module
};

// Writes the path of the program's file.
bool program_path(char* path, size_t room);

// Looks up functions and lines with addr2line if that is installed, and exported functions only if
// not. Stops after main() and leaves out frames of the C library. Of frames without a name in
// one module, one after the other, the first is kept. Returns the number of frames.
int resolve(const Stack& stack, Frame* frames, int room);

}  // namespace openaclnn::check

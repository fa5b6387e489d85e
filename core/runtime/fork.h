// SPDX-License-Identifier: Apache-2.0
// What a process-wide object has to do so that fork() leaves a usable child (multiprocessing, test
// runners).
//
// A registered mutex is held across fork, so that the child finds what it guards in one piece.
// Registered mutexes are leaves: no code may hold two of them, or hold one while it takes a lock
// that somebody keeps while taking one of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace openaclnn {

void hold_across_fork(std::mutex& mutex);  // a second time: no effect

// Runs in the child, after the mutexes are released: worker threads do not survive a fork, their
// owners start again. Registered a second time: no effect.
void after_fork_in_child(void (*reset)());

extern std::atomic<uint32_t> generation;
// 1, and one more in each child than in its parent.
inline uint32_t process_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace openaclnn

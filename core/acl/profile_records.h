// SPDX-License-Identifier: Apache-2.0
// What a profile records, and the files of its folder:
//
//   PROF_000001_<time>_<letters>/
//     host/start_info           the wall clock and the raw monotonic clock at the start
//     host/data/marks.tsv       begin, end, thread, message
//     device_<N>/data/work.tsv  begin, end, stream, submitted from, to, thread, name
//
// Times are nanoseconds of CLOCK_MONOTONIC_RAW, the clock of torch_npu's own records.
// python/msprof/profile_records.py reads them.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "core/support/status.h"

namespace openaclnn {

// The lock of a profile, held around profile_begins and profile_ends.
std::mutex& profile_mutex();
// Makes a folder below `folder` unless the profile has one, and records from now on; no device
// named: all.
Status profile_begins(const char* call, const std::string& folder,
                      const std::set<uint32_t>& devices);
// Writes what was recorded; `finally`: the next profile gets another folder.
Status profile_ends(const char* call, bool finally);
// From the calling thread, in steady nanoseconds; no effect without a profile.
void profile_mark(const std::string& message, int64_t begin, int64_t end);

}  // namespace openaclnn

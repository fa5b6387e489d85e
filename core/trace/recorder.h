// SPDX-License-Identifier: Apache-2.0
// Records calls and the work of streams: as lines of text, as a trace file for chrome://tracing and
// Perfetto, and as a table at the end.
//
// How this works
//
// `openaclnn trace` preloads the libraries of lib64/trace. They have CANN's names, but their
// functions jump to traced forms in libopenaclnn_trace.so:
//
//   program --> libopapi.so (trace) --> openaclnn_trace_aclnnElu    generated: trace_calls.py
//                                           | show.h: arguments as text
//                                           | Call: begin(), the real function, end()
//                                           v
//                                        libopenaclnn.so --> stream --> WorkListener
//                                           |                             | begin, end of each task
//                                           v                             v
//                                        Recorder::called()            Recorder::worked()
//
// Four ways lead in: the generated C functions (call.h), rows that ATen computes (rows.cpp, through
// core/aten/traced.h), direct calls of PyTorch's and JAX's operators (direct_calls.cpp, preloaded),
// and the Python package (python_call.h).
//
// A submission joins the two sides: submit() before phase 2 numbers it, worked() takes the oldest
// one of that stream and name, and an arrow connects both in the trace file. know_plan() remembers
// the arguments of phase 1 by executor, so that the work shows them too. What a stream records for
// a graph gets a number from record() instead, which comes back with the work of each replay; an
// arrow leads from the call of a replay to its first work.
//
// The files are opened at the first call and written line by line; a child of fork writes nothing
// but its part of a report (tally.h), which every process writes at its end.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "core/runtime/work_listener.h"
#include "core/trace/tally.h"
#include "core/trace/terminal.h"

namespace openaclnn::trace {

// Names and values as text.
using Arguments = std::vector<std::pair<std::string, std::string>>;
std::string listed(const Arguments& arguments);

class Recorder {
 public:
  Recorder();
  static Recorder& get();

  int stream_number(const void* identity);

  // Announces work on the stream. Returns its number for withdraw and called. `stream` is the
  // pointer that listeners get. `arguments` are shown unless the executor's plan is known.
  uint64_t submit(const char* name, const void* stream, const aclOpExecutor* executor,
                  const Arguments& arguments);
  void withdraw(uint64_t submission);  // phase 2 refused it
  // The same for a stream in capture, for openaclnn_record_as.
  uint64_t record(const char* name, const aclOpExecutor* executor, const Arguments& arguments);
  void forget(uint64_t recorded);  // no graph has it any more
  void know_plan(const aclOpExecutor* executor, Arguments arguments, Tallied* tallied = nullptr);
  Arguments arguments_of(const aclOpExecutor* plan);  // empty if it is not known
  void called(const char* name, const Arguments& arguments, const std::string& result,
              int64_t begin, int64_t end, uint64_t submission, bool failed);
  // ---- for the report of a run ----
  bool reports() const { return tally_.wanted(); }
  // The entry of a function, as phase 1 gets its arguments; on its first call judges it:
  // call_on(product) is the product's verdict; code 0: accepted.
  using CallOn = std::function<Verdict(const std::string& product)>;
  Tallied* tally(Tallied::Kind kind, const std::string& name, const Signature& signature,
                 const CallOn& call_on);
  void planned(Tallied* own, const std::string& refusal, int64_t begin, int64_t end);
  void fell_back(const std::string& name, const Signature& signature, int64_t begin, int64_t end);
  Tallied* tallied_by(const aclOpExecutor* plan);          // nullptr if it is not known
  void refuse(Tallied* own, const std::string& sentence);  // in phase 2

  void worked(const DoneWork& work);
  void finish();
  void leave();  // before _exit, which runs no destructors: writes the report

 private:
  struct Submission {
    uint64_t number;
    std::string name;
    Arguments arguments;
    Tallied* tallied;
  };
  struct Plan {
    Arguments arguments;
    Tallied* tallied;
  };
  struct CallStart {  // where a call began
    int thread;
    int64_t at;
  };
  struct Figures {
    uint64_t count = 0;
    int64_t total = 0, most = 0;
    void add(int64_t nanoseconds);
  };
  enum class Track { host = 1, stream = 2 };  // process ids of the trace file

  void before_fork();
  void leave_to_parent();  // in the child
  void open();
  Submission submission_of(const char* name, const aclOpExecutor* executor,
                           const Arguments& arguments);
  std::optional<Submission> take_submission(const DoneWork& work);
  void follow_replay(const DoneWork& work, int number);
  int number_of(const void* identity);
  int thread_number();
  // Microseconds with 1 to 3 digits after the point.
  static std::string micros(int64_t nanoseconds, int digits = 3);
  void line(const char* track, int number, int64_t begin, int64_t end, const std::string& what,
            bool failed = false);
  void event(Track track, int number, const std::string& name, int64_t begin, int64_t end,
             const Arguments& arguments);
  void arrow(const char* name, const char* phase, Track track, int number, int64_t at, uint64_t id);
  void follow_event(const std::string& name, const Arguments& arguments, int thread, int64_t begin);
  void name_process(Track track, const std::string& name);
  void name_track(Track track, int number, const std::string& name);
  void write_event(const std::string& fields);
  void write_table();
  void write_report(bool complete);

  std::mutex mutex_;
  int64_t start_ = 0;
  FILE* text_ = nullptr;
  Terminal terminal_;  // if text_ is one
  FILE* json_ = nullptr;
  bool opened_ = false, first_event_ = true;
  int threads_ = 0;
  uint64_t submissions_ = 0;
  std::unordered_map<const void*, int> streams_;
  std::unordered_map<const void*, std::deque<Submission>> submitted_;
  std::unordered_map<const aclOpExecutor*, Plan> plans_;
  std::unordered_map<uint64_t, Submission> recorded_;  // by number, for graphs
  std::unordered_map<const void*, int64_t> replays_;   // by stream: when the newest was called
  std::unordered_map<uint32_t, int> thread_numbers_;   // by that of Submission
  Tally tally_;
  pid_t process_ = getpid();
  std::unordered_map<std::string, CallStart> records_;      // of each event, the newest
  std::map<std::pair<int, std::string>, Figures> figures_;  // by stream, 0 for calls of the host
};

}  // namespace openaclnn::trace

// SPDX-License-Identifier: Apache-2.0
#include "core/trace/recorder.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/support/no_destructor.h"
#include "core/trace/output.h"

namespace openaclnn::trace {
namespace {

std::string value_of(const Arguments& arguments, const char* name) {
  for (const auto& [known, value] : arguments) {
    if (known == name) return value;
  }
  return {};
}

// The name of the program, without folders.
std::string program_name() { return program_invocation_short_name; }

// At load, when there is one thread: fork handlers are registered once.
[[gnu::constructor]] void begin() { (void)Recorder::get(); }

[[gnu::destructor]] void end() { Recorder::get().finish(); }

}  // namespace

std::string listed(const Arguments& arguments) {
  std::string text;
  for (const auto& [name, value] : arguments) {
    text += (text.empty() ? "" : ", ") + name + ": " + value;
  }
  return text;
}

Recorder::Recorder() {
  start_ = steady_nanoseconds();
  openaclnn_listen_to_work(ListenerSlot::trace,
                           [](const DoneWork& work) { Recorder::get().worked(work); });
  pthread_atfork([] { get().before_fork(); }, [] { get().mutex_.unlock(); },
                 [] { get().leave_to_parent(); });
}

// Flushes before the fork, so that nothing is written twice.
void Recorder::before_fork() {
  mutex_.lock();
  if (text_ != nullptr) std::fflush(text_);
  if (json_ != nullptr) std::fflush(json_);
}

// The child writes nothing: the files and the final table belong to the parent.
void Recorder::leave_to_parent() {
  if (text_ != nullptr && text_ != stderr) std::fclose(text_);
  if (json_ != nullptr) std::fclose(json_);
  text_ = json_ = nullptr;
  opened_ = true;
  process_ = getpid();
  figures_.clear();
  tally_.restart();
  mutex_.unlock();
}

Recorder& Recorder::get() {
  static constinit NoDestructor<Recorder> recorder;
  return recorder.get();
}

void Recorder::Figures::add(int64_t nanoseconds) {
  ++count;
  total += nanoseconds;
  most = std::max(most, nanoseconds);
}

// Opens the files at the first call: a process that makes none leaves no files.
void Recorder::open() {
  tally_.open();
  if (opened_) return;
  opened_ = true;
  leave_mark("");
  const char* path = std::getenv("OPENACLNN_TRACE_TEXT");
  const bool named = path != nullptr && *path != '\0';
  text_ = named ? open_file("OPENACLNN_TRACE_TEXT") : tally_.wanted() ? nullptr : stderr;
  if (text_ != nullptr) terminal_ = Terminal(text_);
  if (terminal_.is_one()) std::fprintf(text_, "%11s  %-9s %9s\n", "at µs", "by", "took µs");
  json_ = open_file("OPENACLNN_TRACE_JSON");
  if (json_ != nullptr) std::fputs("[\n", json_);
  name_process(Track::host, program_name() + ": calls of acl, by thread");
  name_process(Track::stream, program_name() + ": work of streams");
}

std::string Recorder::micros(int64_t nanoseconds, int digits) {
  constexpr long long kPowers[] = {1, 10, 100, 1000};
  const long long unit = kPowers[3 - digits], scale = kPowers[digits];
  const long long rounded = (std::llabs(nanoseconds) + unit / 2) / unit;
  char text[32];
  std::snprintf(text, sizeof text, "%s%lld.%0*lld", nanoseconds < 0 ? "-" : "", rounded / scale,
                digits, rounded % scale);
  return text;
}

// Arrows from the newest record of an event or a notification to each wait for it.
void Recorder::follow_event(const std::string& name, const Arguments& arguments, int thread,
                            int64_t begin) {
  const char* what = name.ends_with("Notify") ? "notify" : "event";
  if (name.starts_with("aclrtRecordEvent") || name == "aclrtRecordNotify") {
    records_[value_of(arguments, what)] = {thread, begin};
    return;
  }
  if (!name.starts_with("aclrtStreamWaitEvent") && !name.starts_with("aclrtSynchronizeEvent") &&
      name != "aclrtWaitAndResetNotify") {
    return;
  }
  const auto record = records_.find(value_of(arguments, what));
  if (record == records_.end()) return;
  const uint64_t id = ++submissions_;
  arrow("waits for", "\"s\"", Track::host, record->second.thread, record->second.at, id);
  arrow("waits for", "\"f\", \"bp\": \"e\"", Track::host, thread, begin, id);
}

void Recorder::line(const char* track, int number, int64_t begin, int64_t end,
                    const std::string& what, bool failed) {
  if (text_ == nullptr) return;
  if (!terminal_.is_one()) {
    std::fprintf(text_, "%12s µs  %-6s %2d  %9s µs  %s\n", micros(begin - start_).c_str(), track,
                 number, micros(end - begin).c_str(), what.c_str());
    return;
  }
  char start[64];
  std::snprintf(start, sizeof start, "%10s  %-6s %2d %8s  ", micros(begin - start_, 1).c_str(),
                track, number, micros(end - begin, 1).c_str());
  std::fprintf(text_, "%s\n", terminal_.shown(start + what, failed).c_str());
}

int Recorder::thread_number() {
  static thread_local int number = 0;
  if (number == 0) {
    number = ++threads_;
    std::string name = "thread " + std::to_string(number);
    char own[16] = "";
    if (syscall(SYS_gettid) == getpid()) {
      name += ", the main thread";
    } else if (pthread_getname_np(pthread_self(), own, sizeof own) == 0 &&
               own != program_name().substr(0, sizeof own - 1)) {
      name += std::string(", ") + own;
    }
    name_track(Track::host, number, name);
    thread_numbers_[openaclnn_number_of_thread()] = number;
  }
  return number;
}

int Recorder::number_of(const void* identity) {
  const auto [found, fresh] = streams_.try_emplace(identity, static_cast<int>(streams_.size()) + 1);
  if (fresh) {
    name_track(Track::stream, found->second, "stream " + std::to_string(found->second));
  }
  return found->second;
}

int Recorder::stream_number(const void* identity) {
  std::lock_guard lock(mutex_);
  open();
  return number_of(identity);
}

void Recorder::know_plan(const aclOpExecutor* executor, Arguments arguments, Tallied* tallied) {
  std::lock_guard lock(mutex_);
  plans_[executor] = {std::move(arguments), tallied};
}

Arguments Recorder::arguments_of(const aclOpExecutor* plan) {
  std::lock_guard lock(mutex_);
  const auto found = plans_.find(plan);
  return found == plans_.end() ? Arguments() : found->second.arguments;
}

void Recorder::called(const char* name, const Arguments& arguments, const std::string& result,
                      int64_t begin, int64_t end, uint64_t submission, bool failed) {
  std::lock_guard lock(mutex_);
  open();
  const int thread = thread_number();
  if (text_ != nullptr) {
    const std::string what = std::string(name) + "(" + listed(arguments) + ")";
    line("host", thread, begin, end, result.empty() ? what : what + " = " + result, failed);
  }
  if (json_ != nullptr) {
    Arguments fields = arguments;
    if (!result.empty()) fields.emplace_back("returned", result);
    event(Track::host, thread, name, begin, end, fields);
  }
  if (submission != 0) arrow("submits", "\"s\"", Track::host, thread, begin, submission);
  follow_event(name, arguments, thread, begin);
  figures_[{0, name}].add(end - begin);
  if (tally_.is_due(end)) write_report(false);
}

void Recorder::write_table() {
  // Streams first, then calls; each by total time, descending.
  std::vector<std::pair<std::pair<int, std::string>, Figures>> rows(figures_.begin(),
                                                                    figures_.end());
  const auto rank = [](int stream) { return stream == 0 ? INT_MAX : stream; };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    return std::make_pair(rank(a.first.first), -a.second.total) <
           std::make_pair(rank(b.first.first), -b.second.total);
  });
  std::map<int, int64_t> totals;
  int wide = 0;
  for (const auto& [key, own] : rows) {
    totals[key.first] += own.total;
    wide = std::max(wide, static_cast<int>(key.second.size()));
  }
  std::fprintf(text_, "\n%-9s %-*s %6s %11s %6s %9s %10s\n", "", wide, "", "calls", "total µs",
               "share", "mean µs", "most µs");
  for (const auto& [key, own] : rows) {
    const std::string track = key.first == 0 ? "host" : "stream " + std::to_string(key.first);
    const int64_t all = std::max<int64_t>(totals[key.first], 1);
    std::fprintf(text_, "%-9s %-*s %6llu %10s %3lld %% %8s %9s\n", track.c_str(), wide,
                 key.second.c_str(), static_cast<unsigned long long>(own.count),
                 micros(own.total, 2).c_str(),
                 static_cast<long long>((100 * own.total + all / 2) / all),
                 micros(own.total / static_cast<int64_t>(own.count), 2).c_str(),
                 micros(own.most, 2).c_str());
  }
}

void Recorder::finish() {
  std::lock_guard lock(mutex_);
  write_report(true);
  if (!opened_) return;
  errno = 0;
  if (text_ != nullptr) {
    write_table();
    text_ == stderr ? void(std::fflush(text_)) : close_file(text_, "OPENACLNN_TRACE_TEXT");
  }
  errno = 0;
  if (json_ != nullptr) {
    std::fputs("\n]\n", json_);
    close_file(json_, "OPENACLNN_TRACE_JSON");
  }
  text_ = json_ = nullptr;
}

}  // namespace openaclnn::trace

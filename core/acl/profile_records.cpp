// SPDX-License-Identifier: Apache-2.0
#include "core/acl/profile_records.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <random>
#include <vector>

#include "acl/acl_base.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/runtime/stream.h"

namespace openaclnn {
namespace {

struct WorkRecord {
  int64_t begin, end, submit_begin, submit_end;
  int32_t device, stream;
  uint32_t thread;
  const char* name;
};
struct MarkRecord {
  int64_t begin, end;
  uint32_t thread;
  std::string message;
};
struct Clocks {
  int64_t steady, raw;
};

constexpr size_t kMostInMemory = 1 << 16;

int64_t nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Clocks read_clocks() { return {steady_nanoseconds(), nanoseconds(CLOCK_MONOTONIC_RAW)}; }

class Profile {
 public:
  Profile() {
    hold_across_fork(mutex);
    after_fork_in_child([] { get().forget(); });  // the records are the parent's
  }
  static Profile& get() {
    static constinit NoDestructor<Profile> profile;
    return profile.get();
  }

  Status begin(const char* call, const std::string& folder, const std::set<uint32_t>& devices);
  Status end(const char* call, bool finally);
  void forget();

  std::mutex mutex;
  bool running = false;
  bool all_devices = false;
  std::set<uint32_t> devices;
  std::vector<WorkRecord> work;
  std::vector<MarkRecord> marks;
  std::set<std::string> names;

  Status write(const char* call);

 private:
  Status make_folder(const char* call, const std::string& path);
  Status append(const char* call, const std::string& path, const std::string& text);
  int64_t raw_time(int64_t steady, const Clocks& now) const;

  std::string folder_;
  Clocks start_ = {0, 0};
  Status failed_;  // of writing in the middle
};

// The raw clock runs up to 500 ppm apart from the steady one: interpolated.
int64_t Profile::raw_time(int64_t steady, const Clocks& now) const {
  const double span = static_cast<double>(now.steady - start_.steady);
  const double drift = static_cast<double>((now.raw - now.steady) - (start_.raw - start_.steady));
  const double part = span > 0 ? static_cast<double>(steady - start_.steady) / span : 0;
  return steady + (start_.raw - start_.steady) + static_cast<int64_t>(drift * part);
}

Status Profile::make_folder(const char* call, const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return fail(ACL_ERROR_PROFILING_FAILURE, Reason::wrong_value, call, "\"%s\" cannot be made: %s",
              path.c_str(), std::strerror(errno));
}

Status Profile::append(const char* call, const std::string& path, const std::string& text) {
  FILE* file = std::fopen(path.c_str(), "ae");
  bool good = file != nullptr;
  if (good) good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) good = std::fclose(file) == 0 && good;
  if (good) return {};
  return fail(ACL_ERROR_PROFILING_FAILURE, Reason::no_resource, call,
              "\"%s\" cannot be written: %s", path.c_str(), std::strerror(errno));
}

Status Profile::begin(const char* call, const std::string& folder,
                      const std::set<uint32_t>& its_devices) {
  if (folder_.empty()) {
    char name[80], time_text[32];
    const time_t now = time(nullptr);
    tm parts;
    gmtime_r(&now, &parts);
    std::strftime(time_text, sizeof time_text, "%Y%m%d%H%M%S", &parts);
    std::snprintf(name, sizeof name, "/PROF_000001_%s%03d_", time_text,
                  static_cast<int>(nanoseconds(CLOCK_REALTIME) / 1'000'000 % 1000));
    std::string path = folder + name;
    std::random_device random;
    for (int i = 0; i < 16; ++i) path += static_cast<char>('A' + random() % 26);
    Status status = make_folder(call, path);
    for (const char* inner : {"/host", "/host/data"}) {
      if (status.ok()) status = make_folder(call, path + inner);
    }
    char text[256];
    const Clocks clocks = read_clocks();
    const int64_t wall = nanoseconds(CLOCK_REALTIME);
    std::snprintf(text, sizeof text,
                  "{\"collectionTimeBegin\": \"%" PRId64
                  ".%03d\", \"clockMonotonicRaw\": \"%" PRId64 "\", \"pid\": \"%d\"}\n",
                  wall / 1000, static_cast<int>(wall % 1000), clocks.raw,
                  static_cast<int>(getpid()));
    if (status.ok()) status = append(call, path + "/host/start_info", text);
    if (!status.ok()) return status;
    folder_ = path;
  }
  all_devices |= its_devices.empty();
  for (const uint32_t device : its_devices) {
    const std::string path = folder_ + "/device_" + std::to_string(device);
    Status status = make_folder(call, path);
    if (status.ok()) status = make_folder(call, path + "/data");
    if (!status.ok()) return status;
    devices.insert(device);
  }
  if (!running) start_ = read_clocks();
  running = true;
  return {};
}

Status Profile::write(const char* call) {
  const Clocks now = read_clocks();
  std::set<int32_t> seen;
  for (const WorkRecord& record : work) seen.insert(record.device);
  Status status;
  for (const int32_t device : seen) {
    std::string text;
    for (const WorkRecord& record : work) {
      if (record.device != device) continue;
      char line[160];
      std::snprintf(
          line, sizeof line, "%" PRId64 "\t%" PRId64 "\t%d\t%" PRId64 "\t%" PRId64 "\t%u\t",
          raw_time(record.begin, now), raw_time(record.end, now), record.stream,
          raw_time(record.submit_begin, now), raw_time(record.submit_end, now), record.thread);
      text.append(line).append(record.name) += '\n';
    }
    const std::string path = folder_ + "/device_" + std::to_string(device);
    if (status.ok()) status = make_folder(call, path);
    if (status.ok()) status = make_folder(call, path + "/data");
    if (status.ok()) status = append(call, path + "/data/work.tsv", text);
  }
  std::string text;
  for (const MarkRecord& mark : marks) {
    text += std::to_string(raw_time(mark.begin, now)) + '\t' +
            std::to_string(raw_time(mark.end, now)) + '\t' + std::to_string(mark.thread) + '\t';
    for (const char c : mark.message) text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    text += '\n';
  }
  if (status.ok() && !marks.empty()) status = append(call, folder_ + "/host/data/marks.tsv", text);
  work.clear();
  marks.clear();
  start_ = now;
  if (failed_.ok()) failed_ = std::move(status);
  return failed_;
}

Status Profile::end(const char* call, bool finally) {
  Status status = running ? write(call) : Status();
  running = false;
  failed_ = Status();
  all_devices = false;
  devices.clear();
  if (finally) folder_.clear();
  return status;
}

void Profile::forget() {
  work.clear();
  marks.clear();
  folder_.clear();
  all_devices = false;
  devices.clear();
  running = false;
}

void record(const DoneWork& done) noexcept {
  int32_t device = 0, stream = 0;
  if (!openaclnn_number_of_stream(done.stream, &device, &stream)) return;
  Profile& profile = Profile::get();
  std::lock_guard lock(profile.mutex);
  if (!profile.running) return;
  if (!profile.all_devices && profile.devices.count(static_cast<uint32_t>(device)) == 0) return;
  try {
    const Submission& from = done.submission;
    profile.work.push_back({done.begin, done.end, from.begin, from.end, device, stream, from.thread,
                            profile.names.emplace(done.name).first->c_str()});
    if (profile.work.size() >= kMostInMemory) (void)profile.write("aclprofStart");
  } catch (const std::exception&) {  // out of memory: the profile lacks this record
  }
}

}  // namespace

std::mutex& profile_mutex() { return Profile::get().mutex; }

Status profile_begins(const char* call, const std::string& folder,
                      const std::set<uint32_t>& devices) {
  Status status = Profile::get().begin(call, folder, devices);
  if (status.ok()) openaclnn_listen_to_work(ListenerSlot::profile, record);
  return status;
}

Status profile_ends(const char* call, bool finally) {
  openaclnn_listen_to_work(ListenerSlot::profile, nullptr);
  return Profile::get().end(call, finally);
}

void profile_mark(const std::string& message, int64_t begin, int64_t end) {
  Profile& profile = Profile::get();
  std::lock_guard lock(profile.mutex);
  if (!profile.running) return;
  profile.marks.push_back({begin, end, number_of_this_thread(), message});
  if (profile.marks.size() >= kMostInMemory) (void)profile.write("aclprofMark");
}

}  // namespace openaclnn

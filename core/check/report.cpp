// SPDX-License-Identifier: Apache-2.0
// Reports go to stderr as text, and with OPENACLNN_CHECK_JSON also to a file, as one JSON object
// per line. Each is appended by one write, so the file stays valid after a crash, a fork or with
// several processes.
#include "core/check/report.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "core/support/environment.h"
#include "core/support/fork.h"

namespace openaclnn::check {
namespace {

constexpr int kShown = 4;        // frames of a call site
constexpr int kShownInLine = 2;  // frames of the call site of a consequence
constexpr int kMostSites = 4096;

int code = 66;
int json_file = -1;
std::atomic<int> mistakes = 0, leaks = 0, consequences = 0;
std::atomic<bool> lacks_lines = false;

// Serialises reports. A signal handler interrupts a holder only if the library itself faulted.
class Turn {
 public:
  Turn() {
    while (busy_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  ~Turn() { busy_.store(false, std::memory_order_release); }
  static void reset_in_child() { busy_.store(false, std::memory_order_release); }

 private:
  static std::atomic<bool> busy_;
};
std::atomic<bool> Turn::busy_ = false;

struct Hashes {
  bool has(uint64_t hash) const {
    for (int i = 0; i < count; ++i) {
      if (known[i] == hash) return true;
    }
    return false;
  }
  bool add(uint64_t hash) {  // false: known already
    if (has(hash)) return false;
    if (count < kMostSites) known[count++] = hash;
    return true;
  }

  uint64_t known[kMostSites];
  int count;
};

uint64_t hash_of(const CallSite& site) {
  if (site.caller == nullptr) return site.stack.hash();
  uint64_t hash = 14695981039346656037u + static_cast<uint64_t>(site.caller->line);
  for (const char* text : {site.caller->file, site.caller->function}) {
    for (; *text != '\0'; ++text) {
      hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211u;
    }
  }
  return hash;
}

// Hashes of the reports written so far (kind and call sites), and of the calls they were for.
bool is_new(const Report& report) {
  static Hashes reports, calls;
  uint64_t hash = 14695981039346656037u;
  const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  for (const char* c = report.kind; *c != '\0'; ++c) mix(static_cast<unsigned char>(*c));
  for (int i = 0; i < report.sites; ++i) mix(hash_of(report.site[i]));
  const bool of_a_call = report.sites > 0 && std::strcmp(report.site[0].role, "here") == 0;
  const bool new_call = of_a_call && calls.add(hash_of(report.site[0]));
  if (report.unless_reported && of_a_call && !new_call) return false;
  return reports.add(hash);
}

void write_all(int file, const char* text, size_t length) {
  while (length > 0) {
    const ssize_t done = write(file, text, length);
    if (done < 0 && errno != EINTR) return;  // the reader is gone
    if (done > 0) text += done, length -= static_cast<size_t>(done);
  }
}

using Page = Text<1 << 15>;

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Returns the path relative to the working directory, if the file lies below it.
const char* shown_path(const char* path) {
  static char folder[4096];  // reports are made one at a time
  if (getcwd(folder, sizeof folder) == nullptr) return path;
  const size_t length = std::strlen(folder);
  const bool inside = std::strncmp(path, folder, length) == 0 && path[length] == '/';
  return inside ? path + length + 1 : path;
}

bool is_program(const char* module) {
  char path[sizeof Frame::module];
  return program_path(path, sizeof path) && std::strcmp(module, path) == 0;
}

void add_frame(Page& page, const Frame& frame) {
  page.add(frame.function[0] != '\0' ? frame.function : "a function without a name");
  if (frame.line > 0) {
    page.add(" at ").add(shown_path(frame.file)).add(":").number(static_cast<uint64_t>(frame.line));
  } else {
    page.add(" in ").add(base_name(frame.module)).add("+").hex(frame.offset);
  }
}

void add_frame_json(Page& page, const Frame& frame) {
  page.add("{\"function\": ").quoted(frame.function).add(", \"file\": ").quoted(frame.file);
  page.add(", \"line\": ").number(static_cast<uint64_t>(frame.line));
  page.add(", \"module\": ").quoted(frame.module).add(", \"offset\": ").number(frame.offset);
  page.add("}");
}

struct Frames {
  Frame frame[kShown];
  int count;
};

void find_frames(const CallSite& site, Frames* found) {
  if (site.caller == nullptr) {
    found->count = resolve(site.stack, found->frame, kShown);
    if (found->count > 0 && found->frame[0].line == 0 && is_program(found->frame[0].module)) {
      lacks_lines.store(true, std::memory_order_relaxed);
    }
    return;
  }
  static_assert(sizeof(Frame::function) == sizeof(Caller::function) &&
                sizeof(Frame::file) == sizeof(Caller::file));
  Frame& own = found->frame[0] = {};
  std::memcpy(own.function, site.caller->function, sizeof own.function);
  std::memcpy(own.file, site.caller->file, sizeof own.file);
  own.line = site.caller->line;
  found->count = 1;
}

void add_frames(Page& page, const Frames& found, int most) {
  for (int i = 0; i < found.count && i < most; ++i) {
    if (i > 0) page.add(", called by ");
    add_frame(page, found.frame[i]);
  }
  if (found.count == 0) page.add("outside the program");
}

void add_mistake(Page& page, const Report& report, const Frames* found) {
  page.add("openaclnn check: ").add(report.kind).add(": ").add(report.what.data()).add("\n");
  for (int i = 0; i < report.sites; ++i) {
    const CallSite& site = report.site[i];
    page.add("    ").add(site.role);
    if (site.call != nullptr) page.add(" ").add(site.call);
    add_frames(page.add(": "), found[i], kShown);
    page.add("\n");
  }
  page.add("    to do: ").add(report.advice).add("\n");
}

void add_consequence(Page& page, const Report& report, const Frames* found) {
  page.add("    consequence: ").add(report.kind).add(": ").add(report.what.data());
  if (report.sites > 0) {
    add_frames(page.add(" ("), found[0], kShownInLine);
    page.add(")");
  }
  page.add("\n");
}

void add_json(Page& page, const Report& report, const Frames* found) {
  page.add("{\"kind\": ").quoted(report.kind).add(", \"what\": ").quoted(report.what.data());
  page.add(", \"consequence\": ")
      .add(report.is_consequence ? "true" : "false")
      .add(", \"places\": [");
  for (int i = 0; i < report.sites; ++i) {
    const CallSite& site = report.site[i];
    page.add(i == 0 ? "" : ", ").add("{\"role\": ").quoted(site.role).add(", \"call\": ");
    page.quoted(site.call == nullptr ? "" : site.call).add(", \"frames\": [");
    for (int k = 0; k < found[i].count; ++k) {
      if (k > 0) page.add(", ");
      add_frame_json(page, found[i].frame[k]);
    }
    page.add("]}");
  }
  page.add("], \"advice\": ").quoted(report.advice).add("}\n");
}

}  // namespace

void prepare_reports() {
  after_fork_in_child(Turn::reset_in_child);  // a thread of the parent may hold it
  code = static_cast<int>(environment_number("OPENACLNN_CHECK_EXIT_CODE", code));
  const char* path = std::getenv("OPENACLNN_CHECK_JSON");
  if (path == nullptr || *path == '\0') return;
  json_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (json_file < 0) {
    warn_environment("OPENACLNN_CHECK_JSON", "a file that can be written", path, "no file");
  }
}

void emit(const Report& report) {
  static Page text, json;  // too large for the stack of a signal handler
  static Frames frames[Report::kCallSites];
  const int before = errno;
  const Turn turn;
  if (!is_new(report)) {
    errno = before;
    return;
  }
  (report.is_consequence ? consequences : mistakes).fetch_add(1, std::memory_order_relaxed);
  if (std::strcmp(report.kind, "leak") == 0) leaks.fetch_add(1, std::memory_order_relaxed);
  for (int i = 0; i < report.sites; ++i) find_frames(report.site[i], &frames[i]);
  text.clear(), json.clear();
  (report.is_consequence ? add_consequence : add_mistake)(text, report, frames);
  add_json(json, report, frames);
  write_all(STDERR_FILENO, text.data(), text.size());
  if (json_file >= 0) write_all(json_file, json.data(), json.size());
  errno = before;
}

void print_total() {
  const auto load = [](const auto& n) { return n.load(std::memory_order_relaxed); };
  const auto count = [](Text<256>& text, int n, const char* what) {
    text.number(static_cast<uint64_t>(n)).add(" ").add(what).add(n == 1 ? "" : "s");
  };
  const int all = load(mistakes), of_leaks = load(leaks), more = load(consequences);
  Text<256> text;
  if (load(lacks_lines)) {
    text.add("openaclnn check: build the program with -g to see its files and lines\n");
  }
  count(text.add("openaclnn check: "), all, "mistake");
  if (of_leaks > 0 && of_leaks < all) {
    text.add(", ").number(static_cast<uint64_t>(of_leaks)).add(" of them ");
    text.add(of_leaks == 1 ? "a leak" : "leaks").add(more > 0 ? "," : "");
  }
  if (more > 0) count(text.add(" with "), more, "consequence");
  text.add("\n");
  write_all(STDERR_FILENO, text.data(), text.size());
}

int mistakes_reported() { return mistakes.load(std::memory_order_relaxed); }
int exit_code() { return code; }

}  // namespace openaclnn::check

// SPDX-License-Identifier: Apache-2.0
// Captures stacks as addresses; names are resolved only for reports. addr2line resolves them in a
// separate process, since only debug information has static functions and lines. Nothing here
// allocates, so all of it works in a signal handler.
#include "core/check/stack.h"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/check/text.h"

namespace openaclnn::check {
namespace {

constexpr int kDepth = 40;

const char* file_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// libopenaclnn, the tracing library and the ATen backend.
bool is_own(const Dl_info& info) {
  const char* name = file_name(info.dli_fname);
  return std::strncmp(name, "libopenaclnn", 12) == 0 || std::strcmp(name, "libaclnn_math.so") == 0;
}

bool is_libc(const Dl_info& info) {
  const char* name = file_name(info.dli_fname);
  return std::strncmp(name, "libc.so", 7) == 0 || std::strncmp(name, "libpthread", 10) == 0;
}

// Returns the exported function that a return address lies in, or nullptr.
const char* public_function(void* frame) {
  constexpr std::string_view kAlias = "openaclnn_";
  Dl_info info;
  if (dladdr(static_cast<char*>(frame) - 1, &info) == 0 || info.dli_sname == nullptr) {
    return nullptr;
  }
  std::string_view name = info.dli_sname;
  if (name.starts_with(kAlias)) name.remove_prefix(kAlias.size());
  return is_public_name(name) ? name.data() : nullptr;
}

// Returns the stack from the first frame outside this library on.
Stack outside(void* const* frames, int count) {
  int first = 0;
  for (Dl_info own; first < count; ++first) {
    if (dladdr(frames[first], &own) == 0 || !is_own(own)) break;
  }
  Stack stack;
  for (int i = first; i-- > 0 && stack.entry == nullptr;) {  // wrappers of the tracer have no name
    stack.entry = public_function(frames[i]);
  }
  for (int i = first; i < count && stack.count < Stack::kFrames; ++i) {
    stack.frame[stack.count++] = frames[i];
  }
  return stack;
}

void* instruction_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<void*>(machine.gregs[REG_RIP]);
#else
  return reinterpret_cast<void*>(machine.pc);
#endif
}

void copy(char* to, size_t room, const char* from, size_t length) {
  if (length > room - 1) length = room - 1;
  std::memcpy(to, from, length);
  to[length] = '\0';
}

// Reads the output of a command, cut to the room. Returns its length, or -1.
int output_of(char* const* command, char* output, size_t room) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  char path[512] = "PATH=/usr/local/bin:/usr/bin:/bin", plain[] = "LC_ALL=C";
  if (const char* own = std::getenv("PATH"); own != nullptr && std::strlen(own) < 500) {
    copy(path + 5, sizeof path - 5, own, std::strlen(own));
  }
  char* environment[] = {path, plain, nullptr};  // without LD_PRELOAD
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  const int failed = posix_spawnp(&child, command[0], &actions, &attributes, command, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got = 1; failed == 0 && got > 0 && length < room - 1;) {
    got = read(ends[0], output + length, room - 1 - length);
    if (got > 0) length += static_cast<size_t>(got);
  }
  close(ends[0]);
  if (failed != 0) return -1;
  output[length] = '\0';
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? static_cast<int>(length) : -1;
}

// Returns the line up to its end, which becomes a NUL, and moves *text behind it. Returns nullptr
// at the end.
char* next_line(char** text) {
  char* line = *text;
  char* end = std::strchr(line, '\n');
  if (end == nullptr) return nullptr;
  *end = '\0';
  *text = end + 1;
  return line;
}

// Whether the file has the names of all its functions. Without them addr2line takes the nearest
// exported function, which may be any.
bool has_symbol_table(const char* module) {
  const int file = open(module, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  Elf64_Ehdr header;
  bool found = pread(file, &header, sizeof header, 0) == sizeof header &&
               header.e_shentsize == sizeof(Elf64_Shdr);
  const int sections = found ? header.e_shnum : 0;
  found = false;
  for (int i = 0; i < sections && !found; ++i) {
    Elf64_Shdr section;
    const auto at = static_cast<off_t>(header.e_shoff + static_cast<size_t>(i) * sizeof section);
    found = pread(file, &section, sizeof section, at) == sizeof section &&
            section.sh_type == SHT_SYMTAB;
  }
  close(file);
  return found;
}

// addr2line prints two lines for each address, the function and file:line, with ?? for what it does
// not know.
// Without parameters and the type of the result, which fill lines where they are templates:
// "int make<float>(std::vector<float> const&)" is make<float>.
std::string_view short_name(std::string_view name) {
  constexpr std::string_view anonymous = "(anonymous namespace)", op = "operator";
  size_t begin = 0;
  int depth = 0;  // of templates and lambdas
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i, op.size()) == op) return name.substr(begin);  // <, ( and spaces are its name
    if (name.substr(i, anonymous.size()) == anonymous) {
      i += anonymous.size() - 1;
    } else if (name[i] == '<' || name[i] == '{') {
      ++depth;
    } else if (name[i] == '>' || name[i] == '}') {
      --depth;
    } else if (depth == 0 && name[i] == ' ') {
      begin = i + 1;
    } else if (depth == 0 && name[i] == '(') {
      return name.substr(begin, i - begin);
    }
  }
  return name;
}

void ask_addr2line(Frame* frames, int count) {
  static char output[1 << 14];  // reports are made one at a time
  Text<24> address[Stack::kFrames];
  char program[] = "addr2line", demangle[] = "-Cf", module_flag[] = "-e";
  char* command[Stack::kFrames + 5] = {program, demangle, module_flag, frames[0].module};
  int asked = 0;
  for (int i = 0; i < count; ++i) {
    if (std::strcmp(frames[i].module, frames[0].module) != 0) break;
    address[i].hex(frames[i].offset);
    command[4 + asked++] = const_cast<char*>(address[i].data());
  }
  if (output_of(command, output, sizeof output) > 0) {
    const bool all_names = has_symbol_table(frames[0].module);
    char* text = output;
    for (int i = 0; i < asked; ++i) {
      const char* function = next_line(&text);
      char* place = function == nullptr ? nullptr : next_line(&text);
      if (place == nullptr) break;
      const char* colon = std::strrchr(place, ':');
      const bool line = place[0] != '?' && colon != nullptr && std::atoi(colon + 1) > 0;
      // dladdr gives a name only to what lies inside the function.
      const bool reliable = line || all_names || frames[i].function[0] != '\0';
      if (function[0] != '?' && reliable) {
        const std::string_view name = short_name(function);
        copy(frames[i].function, sizeof frames[i].function, name.data(), name.size());
      }
      if (!line) continue;
      frames[i].line = std::atoi(colon + 1);
      copy(frames[i].file, sizeof frames[i].file, place, static_cast<size_t>(colon - place));
    }
  }
  if (asked < count) ask_addr2line(frames + asked, count - asked);
}

}  // namespace

void prepare_stacks() {
  void* frames[2];
  backtrace(frames, 2);
}

Stack stack_here() {
  void* frames[kDepth];
  const int count = backtrace(frames, kDepth);
  Dl_info info;  // a sanitizer puts its own backtrace before this function
  const int first = count > 1 && dladdr(frames[0], &info) != 0 && !is_own(info) ? 1 : 0;
  return outside(frames + first, count - first);
}

Stack stack_of_fault(void* context) {
  void* frames[kDepth];
  const int count = backtrace(frames, kDepth);
  void* fault = instruction_of(context);
  int first = 0;
  while (first < count && frames[first] != fault) ++first;
  if (first == count) return outside(&fault, 1);
  // Frames hold return addresses; this one is the faulting instruction itself.
  frames[first] = static_cast<char*>(frames[first]) + 1;
  Stack stack = outside(frames + first, count - first);
  return stack;
}

bool is_called_from(const Stack& stack, const char* library) {
  Dl_info info;
  return stack.count > 0 && dladdr(stack.frame[0], &info) != 0 &&
         std::strncmp(file_name(info.dli_fname), library, std::strlen(library)) == 0;
}

bool program_path(char* path, size_t room) {
  const ssize_t length = readlink("/proc/self/exe", path, room - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return true;
}

namespace {

// Without the headers of the C++ library (std::__invoke below a thread's function); of frames in a
// row that have neither name nor line, in one module, the first says as much as all.
int telling(Frame* frames, int count) {
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    const Frame& own = frames[i];
    if (kept > 0 && std::strstr(own.file, "/include/c++/") != nullptr) continue;
    const bool nameless = own.function[0] == '\0' && own.line == 0;
    if (nameless && kept > 0 && std::strcmp(frames[kept - 1].module, own.module) == 0) continue;
    if (kept != i) frames[kept] = own;
    ++kept;
  }
  return kept;
}

}  // namespace

int resolve(const Stack& stack, Frame* frames, int room) {
  int count = 0;
  for (int i = 0; i < stack.count && count < room; ++i) {
    Dl_info info;
    char* at = static_cast<char*>(stack.frame[i]) - 1;  // inside the call
    if (dladdr(at, &info) == 0 || is_libc(info)) continue;
    Frame& frame = frames[count++];
    frame = Frame{};
    char real[sizeof frame.module];
    const char* module = info.dli_fname;
    if (module[0] != '/') {  // the program, by the name it was started with
      if (program_path(real, sizeof real)) module = real;
    }
    copy(frame.module, sizeof frame.module, module, std::strlen(module));
    const auto* header = static_cast<const Elf64_Ehdr*>(info.dli_fbase);
    const auto base = header->e_type == ET_EXEC ? 0 : reinterpret_cast<uintptr_t>(info.dli_fbase);
    frame.offset = reinterpret_cast<uintptr_t>(at) - base;
    if (info.dli_sname != nullptr) {
      copy(frame.function, sizeof frame.function, info.dli_sname, std::strlen(info.dli_sname));
    }
  }
  if (count > 0) ask_addr2line(frames, count);
  count = telling(frames, count);
  for (int i = 0; i < count; ++i) {
    if (std::strcmp(frames[i].function, "main") == 0) return i + 1;
  }
  return count;
}

}  // namespace openaclnn::check

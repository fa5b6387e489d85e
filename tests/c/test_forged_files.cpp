// SPDX-License-Identifier: Apache-2.0
// Keys, numbers and shared files that another program forged: each import returns a status, and
// what it accepted can be used and ended. A file that its owner can shorten is refused, because
// touching a page behind the end of a file kills the process.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "gate.h"

// Memory cannot be shared where the sanitizer guards its ends.
extern "C" __attribute__((weak)) void __asan_poison_memory_region(const volatile void*, size_t);

namespace {

constexpr size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// What an export left: the key, and the first page of the file behind it.
struct Exported {
  std::string key;
  std::vector<char> page;
  unsigned long long token = 0;
  int file = -1;
};

Exported look_behind(const char* key) {
  Exported found;
  found.key = key;
  int process = 0;
  CHECK_EQ(std::sscanf(key, "openaclnn-%d-%d-%llx", &process, &found.file, &found.token), 3);
  found.page.resize(kPage);
  CHECK_EQ(pread(found.file, found.page.data(), kPage, 0), static_cast<ssize_t>(kPage));
  return found;
}

std::string key_of(int file, unsigned long long token) {
  char key[65];
  std::snprintf(key, sizeof key, "openaclnn-%d-%d-%016llx", getpid(), file, token);
  return key;
}

int forged(const std::vector<char>& page, size_t size, int seals) {
  const int file = memfd_create("forged", MFD_ALLOW_SEALING);
  CHECK(file >= 0);
  CHECK_EQ(ftruncate(file, static_cast<off_t>(size)), 0);
  const size_t written = std::min(size, page.size());
  CHECK_EQ(pwrite(file, page.data(), written, 0), static_cast<ssize_t>(written));
  if (seals != 0) CHECK_EQ(fcntl(file, F_ADD_SEALS, seals), 0);
  return file;
}

// Imports as everything there is, and uses and ends what was accepted; how many were.
int import_all(const std::string& key) {
  int accepted = 0;
  const auto judge = [&](int code, const char* call) {
    if (code == 0) ++accepted;
    if (code != 0) CHECK_TEXT(call);
    return code == 0;
  };
  aclrtNotify notify = nullptr;
  if (judge(aclrtNotifyImportByKey(&notify, key.c_str(), 0), "aclrtNotifyImportByKey")) {
    CHECK_EQ(aclrtRecordNotify(notify, nullptr), 0);
    CHECK_EQ(aclrtWaitAndResetNotify(notify, nullptr, 5), 0);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
    CHECK_EQ(aclrtDestroyNotify(notify), 0);
  }
  aclrtIpcEventHandle handle;
  std::memset(handle.reserved, 0, sizeof handle.reserved);
  std::memcpy(handle.reserved, key.data(), std::min(key.size(), sizeof handle.reserved));
  aclrtEvent event = nullptr;
  if (judge(aclrtIpcOpenEventHandle(handle, &event), "aclrtIpcOpenEventHandle")) {
    aclrtEventRecordedStatus recorded;
    CHECK_EQ(aclrtQueryEventStatus(event, &recorded), 0);
    CHECK_EQ(aclrtRecordEvent(event, nullptr), 0);
    (void)aclrtSynchronizeEventWithTimeout(event, 5);  // the forged counters may be far ahead
    CHECK_EQ(aclrtDestroyEvent(event), 0);
  }
  void* memory = nullptr;
  if (judge(aclrtIpcMemImportByKey(&memory, key.c_str(), 0), "aclrtIpcMemImportByKey")) {
    static_cast<char*>(memory)[0] = 1;
    CHECK_EQ(aclrtIpcMemClose(key.c_str()), 0);
  }
  (void)aclGetRecentErrMsg();
  return accepted;
}

void wrong_keys(std::mt19937& random, const Exported& real) {
  const std::string forms[] = {"",
                               "openaclnn-",
                               "openaclnn-%s%n%s",
                               "openaclnn--1--1-ffffffffffffffff",
                               "openaclnn-99999999999999999999-99999999999999999999-1",
                               "openaclnn-1-0-0000000000000000",
                               std::string(64, 'x'),
                               std::string(65, 'x'),
                               std::string(200, '9')};
  for (const std::string& form : forms) CHECK_EQ(import_all(form), 0);
  for (size_t n = 0; n + 1 < real.key.size(); ++n) CHECK_EQ(import_all(real.key.substr(0, n)), 0);
  for (int i = 0; i < 500; ++i) {
    std::string key = real.key;
    key[random() % key.size()] = static_cast<char>(random() % 256);
    (void)import_all(key.c_str());
  }
  aclrtDrvMemHandle handle = nullptr;
  for (int i = 0; i < 500; ++i) {
    const uint64_t number = static_cast<uint64_t>(random()) << 32 | random();
    CHECK_EQ(aclrtMemImportFromShareableHandle(number, 0, &handle), 107000);
    const uint64_t own = static_cast<uint64_t>(getpid()) << 42 | (number & ((1ull << 26) - 1));
    CHECK_EQ(aclrtMemImportFromShareableHandle(own, 0, &handle), 107000);
    int32_t pid = 1;
    CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &pid, 1), 107000);
  }
  (void)aclGetRecentErrMsg();
}

// Other things that have a file descriptor.
void no_files(const Exported& real) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const int files[] = {0,
                       ends[0],
                       ends[1],
                       open("/", O_RDONLY | O_DIRECTORY),
                       open("/dev/null", O_RDWR),
                       open("/dev/zero", O_RDWR),
                       open("/proc/self/status", O_RDONLY),
                       open("/proc/self/exe", O_RDONLY)};
  for (const int file : files) {
    CHECK_EQ(import_all(key_of(file, real.token)), 0);
    if (file > 2) close(file);
  }
}

void forged_files(std::mt19937& random, const Exported& real) {
  CHECK_EQ(import_all(real.key), 1);
  const auto accepted = [&](const std::vector<char>& page, size_t size, int seals) {
    const int file = forged(page, size, seals);
    const int count = import_all(key_of(file, real.token));
    close(file);
    return count;
  };
  CHECK_EQ(accepted(real.page, kPage, kSeals), 1);
  CHECK_EQ(accepted(real.page, kPage, 0), 0);            // could be shortened
  CHECK_EQ(accepted(real.page, kPage, F_SEAL_GROW), 0);  // and so could this
  CHECK_EQ(accepted(real.page, 3 * kPage, kSeals), 0);   // longer than its header says
  CHECK_EQ(accepted(real.page, kPage - 1, kSeals), 0);   // shorter than a header
  CHECK_EQ(accepted(real.page, 0, kSeals), 0);
  CHECK_EQ(accepted(std::vector<char>(kPage), kPage, kSeals), 0);
  CHECK_EQ(accepted(real.page, kPage, kSeals | F_SEAL_WRITE), 0);
  for (int i = 0; i < 400; ++i) {  // of a header whose token fits
    std::vector<char> page = real.page;
    for (int k = 0; k < 4; ++k)
      page[8 + random() % (i % 2 == 0 ? 32 : 1200)] = static_cast<char>(random());
    (void)accepted(page, kPage * (1 + random() % 3), kSeals);
  }
}

// The owner cannot shorten what others map.
void shortened(const Exported& real) {
  CHECK_EQ(ftruncate(real.file, 0), -1);
  CHECK_EQ(errno, EPERM);
}

void exports(std::mt19937& random) {
  char key[65];
  aclrtNotify notify = nullptr;
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_EQ(aclrtNotifyGetExportKey(notify, key, sizeof key, 1 << 1), 0);
  const Exported of_notify = look_behind(key);
  wrong_keys(random, of_notify);
  no_files(of_notify);
  forged_files(random, of_notify);
  shortened(of_notify);
  aclrtEvent event = nullptr;
  CHECK_FAILS(aclrtIpcMemImportByKey(&event, key, 0), 107000,
              "is that of a notify, and this call opens memory");
  CHECK_EQ(aclrtDestroyNotify(notify), 0);

  CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC), 0);
  aclrtIpcEventHandle handle;
  CHECK_EQ(aclrtIpcGetEventHandle(event, &handle), 0);
  std::memcpy(key, handle.reserved, sizeof handle.reserved);
  const Exported of_event = look_behind(key);
  forged_files(random, of_event);
  shortened(of_event);
  CHECK_FAILS(aclrtNotifyImportByKey(&notify, key, 0), 107000,
              "is that of an event, and this call opens a notify");
  CHECK_EQ(aclrtDestroyEvent(event), 0);
}

// Memory that is closed while a stream still writes to it.
void closed_while_used() {
  constexpr size_t kSize = 100'000;
  void *p = nullptr, *q = nullptr;
  char key[65] = {};
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtMalloc(&p, kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtIpcMemGetExportKey(p, kSize, key, sizeof key, 0), 0);
  shortened(look_behind(key));
  CHECK_EQ(aclrtIpcMemImportByKey(&q, key, 0), 0);
  {
    Gate gate(stream);
    CHECK_EQ(aclrtMemsetAsync(q, kSize, 9, kSize, stream), 0);
    std::thread closing([&] { CHECK_EQ(aclrtIpcMemClose(key), 0); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK(aclrtIpcMemClose("unknown") != 0);
    gate.open();
    closing.join();
  }
  CHECK_EQ(static_cast<char*>(p)[kSize - 1], 9);
  CHECK_EQ(aclrtIpcMemClose(key), 0);  // of the export
  CHECK_EQ(aclrtFree(p), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  (void)aclGetRecentErrMsg();
}

}  // namespace

int main(int count, char** words) {
  const auto seed = count > 1 ? static_cast<unsigned>(std::strtoul(words[1], nullptr, 10))
                              : std::random_device{}();
  std::printf("seed %u\n", seed);
  std::fflush(stdout);
  std::mt19937 random(seed);
  CHECK_EQ(aclrtSetDevice(0), 0);
  exports(random);
  if (__asan_poison_memory_region == nullptr) closed_while_used();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}

// SPDX-License-Identifier: Apache-2.0
// Collectives of a C++ program: two devices in one process, then two processes that share a root
// info. The argument is what to do: "refused" without the library of ATen.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

#define MUST(x)                                                                              \
  do {                                                                                       \
    if ((x) != 0) {                                                                          \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, aclGetRecentErrMsg()); \
      std::_Exit(1);                                                                         \
    }                                                                                        \
  } while (0)

namespace {

float* device(const std::vector<float>& values) {
  void* p = nullptr;
  MUST(aclrtMalloc(&p, values.size() * 4, ACL_MEM_MALLOC_HUGE_FIRST));
  MUST(aclrtMemcpy(p, values.size() * 4, values.data(), values.size() * 4,
                   ACL_MEMCPY_HOST_TO_DEVICE));
  return static_cast<float*>(p);
}

// Some ranks of two, in another order: twice, since ids may be used again.
void divide(uint32_t rank, HcclComm comm) {
  uint32_t both[] = {1, 0}, same[] = {1, 1}, far[] = {0, 2}, alone[] = {rank}, own = 9, all = 9;
  HcclComm made = comm;
  MUST(HcclCreateSubCommConfig(nullptr, 2, both, 7, 1 - rank, nullptr, &made) != HCCL_E_PTR);
  MUST(HcclCreateSubCommConfig(&comm, 2, both, 7, 1 - rank, nullptr, nullptr) != HCCL_E_PTR);
  MUST(HcclCreateSubCommConfig(&comm, 2, nullptr, 7, 1 - rank, nullptr, &made) != HCCL_E_PTR);
  MUST(HcclCreateSubCommConfig(&comm, 2, both, 7, rank, nullptr, &made) != HCCL_E_PARA);
  MUST(HcclCreateSubCommConfig(&comm, 2, both, 7, 2, nullptr, &made) != HCCL_E_PARA);
  for (uint32_t count : {0u, 3u, UINT32_MAX})
    MUST(HcclCreateSubCommConfig(&comm, count, both, 7, 0, nullptr, &made) != HCCL_E_PARA);
  for (uint32_t* wrong : {same, far})
    MUST(HcclCreateSubCommConfig(&comm, 2, wrong, 7, 0, nullptr, &made) != HCCL_E_PARA);
  MUST(made != nullptr);
  made = comm;
  MUST(HcclCreateSubCommConfig(&comm, 0, nullptr, 7, UINT32_MAX, nullptr, &made));
  MUST(made != nullptr);  // of other ranks
  for (int round = 0; round < 2; ++round) {
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::strcpy(config.hcclCommName, "divided");
    MUST(HcclCreateSubCommConfig(&comm, 2, both, 7, 1 - rank, &config, &made));
    char name[128];
    MUST(HcclGetCommName(made, name));
    MUST(std::string(name) != "divided");
    MUST(HcclGetRankId(made, &own));
    MUST(own != 1 - rank);
    float* values = device({static_cast<float>(own), 0});
    MUST(HcclBroadcast(values, 2, HCCL_DATA_TYPE_FP32, 1, made, nullptr));
    MUST(aclrtSynchronizeStream(nullptr));
    MUST(values[0] != 1);
    MUST(aclrtFree(values));
    HcclComm inner = nullptr;
    MUST(HcclCreateSubCommConfig(&made, 1, &own, 1, 0, nullptr, &inner));
    MUST(HcclGetRankSize(inner, &all));
    MUST(all != 1);
    MUST(HcclCommDestroy(inner));
    MUST(HcclCommDestroy(made));
  }
  MUST(HcclCreateSubCommConfig(&comm, 1, alone, 7, 0, nullptr, &made));
  MUST(HcclCommDestroy(made));
  MUST(HcclCreateSubCommConfig(&made, 1, alone, 7, 0, nullptr, &made) != HCCL_E_PARA);
}

// What only the links between NPUs have.
void refuse_links(HcclComm comm) {
  HcclComm dead = &comm;
  uint32_t ranks[] = {0};
  bool backup[] = {true};
  void* window = comm;
  for (HcclComm c : {comm, dead}) {
    const HcclResult code = c == comm ? HCCL_E_NOT_SUPPORT : HCCL_E_PARA;
    MUST(HcclCommSuspend(c) != code);
    MUST(HcclCommResume(c) != code);
    MUST(HcclCommWorkingDevNicSet(c, ranks, backup, 1) != code);
    MUST(HcclCommSetMemoryRange(c, &window, 1 << 21, 0, 0) != code);
    MUST(HcclCommUnsetMemoryRange(c, &window) != code);
    MUST(HcclCommActivateCommMemory(c, &window, 1 << 21, 0, &window, 0) != code);
    MUST(HcclCommDeactivateCommMemory(c, &window) != code);
    MUST(HcclCommRegister(c, &window, 8, &window, 0) != code);
    MUST(window != nullptr);
    MUST(HcclCommDeregister(c, &window) != code);
    MUST(HcclCommExchangeMem(c, &window, ranks, 1) != code);
  }
}

// What each rank of two does with its communicator.
void collect(uint32_t rank, HcclComm comm) {
  aclrtStream stream = nullptr;
  MUST(aclrtCreateStream(&stream));
  uint32_t own = 9, all = 9;
  MUST(HcclGetRankId(comm, &own));
  MUST(HcclGetRankSize(comm, &all));
  MUST(own != rank || all != 2);
  const float r = static_cast<float>(rank);
  float *send = device({r, r + 10}), *receive = device({0, 0, 0, 0});
  MUST(HcclAllReduce(send, receive, 2, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
  MUST(HcclBarrier(comm, stream));
  MUST(aclrtSynchronizeStream(stream));
  MUST(receive[0] != 1 || receive[1] != 21);
  MUST(HcclAllGather(send, receive, 2, HCCL_DATA_TYPE_FP32, comm, stream));
  MUST(aclrtSynchronizeStream(stream));
  MUST(receive[0] != 0 || receive[1] != 10 || receive[2] != 1 || receive[3] != 11);
  const uint64_t matrix[4] = {1, 1, 0, 2};  // rank 0 sends 1 to each, rank 1 two to itself
  float* parts = device({r * 100, r * 100 + 1});
  MUST(HcclAlltoAllVC(parts, matrix, HCCL_DATA_TYPE_FP32, receive, HCCL_DATA_TYPE_FP32, comm,
                      stream));
  MUST(aclrtSynchronizeStream(stream));
  MUST(rank == 0 ? receive[0] != 0 : receive[0] != 1 || receive[1] != 100 || receive[2] != 101);
  MUST(aclrtFree(send));
  MUST(aclrtFree(receive));
  MUST(aclrtFree(parts));
  MUST(aclrtDestroyStream(stream));
  divide(rank, comm);
  refuse_links(comm);
}

void one_process() {
  int32_t devices[] = {0, 1}, twice[] = {0, 0};
  HcclComm comms[2] = {};
  MUST(HcclCommInitAll(2, twice, comms) != HCCL_E_PARA);
  MUST(HcclCommInitAll(3, devices, comms) != HCCL_E_PARA);
  MUST(HcclCommInitAll(2, nullptr, comms) != HCCL_E_PTR);
  MUST(HcclCommInitAll(2, devices, comms));
  const auto rank = [&](uint32_t own) {
    MUST(aclrtSetDevice(static_cast<int32_t>(own)));
    collect(own, comms[own]);
    MUST(aclrtResetDevice(static_cast<int32_t>(own)));
  };
  std::thread first(rank, 0), second(rank, 1);
  first.join();
  second.join();
  for (HcclComm comm : comms) MUST(HcclCommDestroy(comm));
  MUST(HcclCommDestroy(comms[0]) != HCCL_E_PARA);
}

void process(uint32_t rank, const HcclRootInfo& root) {
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  std::strcpy(config.hcclCommName, "pair");
  HcclComm comm = nullptr;
  MUST(aclrtSetDevice(0));
  MUST(HcclCommInitRootInfoConfig(2, &root, rank, &config, &comm));
  char name[128];
  MUST(HcclGetCommName(comm, name));
  MUST(std::string(name) != "pair");
  collect(rank, comm);
  MUST(HcclCommDestroy(comm));
  MUST(aclrtResetDevice(0));
}

// The root info goes through a pipe: each process loads the library by itself.
void two_processes() {
  int ends[2];
  MUST(pipe(ends));
  const pid_t child = fork();
  HcclRootInfo root;
  if (child == 0) {
    MUST(read(ends[0], &root, sizeof root) != static_cast<ssize_t>(sizeof root));
    process(1, root);
    std::_Exit(0);
  }
  MUST(HcclGetRootInfo(&root));
  MUST(write(ends[1], &root, sizeof root) != static_cast<ssize_t>(sizeof root));
  process(0, root);
  int status = 0;
  MUST(waitpid(child, &status, 0) != child || status != 0);
}

void refused() {
  HcclRootInfo root;
  int32_t devices[] = {0};
  HcclComm comm = nullptr;
  MUST(HcclGetRootInfo(&root) != HCCL_E_NOT_SUPPORT);
  std::puts(aclGetRecentErrMsg());
  MUST(HcclCommInitAll(1, devices, &comm) != HCCL_E_NOT_SUPPORT);
  MUST(HcclCommInitClusterInfo("ranks.json", 0, &comm) != HCCL_E_NOT_SUPPORT);
  MUST(std::string(HcclGetErrorString(HCCL_E_PARA)) != "parameter error");
  HcclConfigValue value = {7};
  MUST(HcclGetConfig(HCCL_DETERMINISTIC, &value));
  MUST(value.value != 1);
  MUST(HcclGetConfig(HCCL_ACCELERATOR, &value) != HCCL_E_PARA);
  MUST(HcclSetConfig(HCCL_DETERMINISTIC, value));
  MUST(HcclSetConfig(static_cast<HcclConfig>(9), value) != HCCL_E_PARA);
  MUST(HcclGetCommConfigCapability() != HCCL_COMM_CONFIG_OP_EXPANSION_MODE);
}

// Root infos that no HcclGetRootInfo wrote, or that were cut short: a status, in time.
void forged() {
  HcclRootInfo root, real;
  MUST(aclrtSetDevice(0));
  MUST(HcclGetRootInfo(&real));
  const auto refuse = [&](const std::string& text) {
    int object = 0;
    HcclComm comm = &object;
    std::memset(&root, 0, sizeof root);
    std::memcpy(&root, text.data(), std::min(text.size(), sizeof root));
    MUST(HcclCommInitRootInfo(2, &root, 1, &comm) == 0);
    MUST(comm != nullptr);
    MUST(std::string(aclGetRecentErrMsg()).empty());
  };
  for (const char* text : {"", "openaclnn", "openaclnn 127.0.0.1", "openaclnn 127.0.0.1 1 0",
                           "openaclnn 127.0.0.1 99999999999 0", "openaclnn %s%n %n %n",
                           "openaclnn no.such.host.invalid 1 0", "other 127.0.0.1 1 0"})
    refuse(text);
  refuse(std::string(sizeof root, 'x'));
  refuse("openaclnn " + std::string(sizeof root, '1'));
  const std::string text(reinterpret_cast<const char*>(&real));
  for (const size_t part : {text.size() / 3, text.size() / 2}) refuse(text.substr(0, part));
  unsigned state = 1;  // of a simple generator: the same bytes in every run
  for (int i = 0; i < 200; ++i) {
    std::string bytes(i % 2 == 0 ? 40 : sizeof root, ' ');
    for (char& byte : bytes) byte = static_cast<char>((state = state * 1103515245 + 12345) >> 16);
    refuse(bytes);
  }
  MUST(aclrtResetDevice(0));
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  if (what == "refused") refused();
  if (what == "process") one_process();
  if (what == "forged") forged();
  if (what == "processes") two_processes();
  std::puts("ok");
}

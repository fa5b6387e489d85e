// SPDX-License-Identifier: Apache-2.0
// npu-smi of the installation directory: the devices, in the shape that scripts read. There is no
// board: NA stands where this machine has no such number.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "acl/acl.h"

namespace {

constexpr const char* kNone = "NA";
constexpr const char* kUsage =
    "npu-smi of openaclnn: no NPU, the devices are this CPU\n\n"
    "  npu-smi info                    all devices\n"
    "  npu-smi info -l                 their number and ids\n"
    "  npu-smi info -m                 ids and names of chips\n"
    "  npu-smi info -t board -i ID     of a device; also -t memory and -t usages\n";

struct Memory {
  size_t used = 0, total = 0;  // in MB, as npu-smi says and means MiB
};

// What this process sees: of the machine, or of the limit in OPENACLNN_DEVICE_MEMORY.
Memory memory_of(int device) {
  size_t free = 0, total = 0;
  if (aclrtSetDevice(device) != 0 || aclrtGetMemInfo(ACL_HBM_MEM, &free, &total) != 0) return {};
  aclrtResetDevice(device);
  return {(total - free) >> 20, total >> 20};
}

const char* soc_name() {
  const char* name = aclrtGetSocName();
  return name == nullptr ? kNone : name;
}

// "910B1"
const char* chip_name() {
  const char* name = soc_name();
  return std::strncmp(name, "Ascend", 6) == 0 ? name + 6 : name;
}

void field(const char* name, const char* value) { std::printf("\t%-30s : %s\n", name, value); }
void field(const char* name, size_t value) { std::printf("\t%-30s : %zu\n", name, value); }

void table(int count) {
  constexpr const char* kThin =
      "+---------------------------+---------------+----------------------------------------------"
      "------+";
  constexpr const char* kThick =
      "+===========================+===============+=============================================="
      "======+";
  char text[100];
  std::snprintf(text, sizeof text, "npu-smi %-24s Version: %s", OPENACLNN_VERSION,
                OPENACLNN_VERSION " of openaclnn, no NPU");
  std::printf("+%.96s+\n| %-95s|\n%s\n",
              "---------------------------------------------------------------------------------"
              "----------------------",
              text, kThin);
  std::printf("| %-5s %-20s| %-14s| %-11s %-17s %-21s|\n", "NPU", "Name", "Health", "Power(W)",
              "Temp(C)", "Hugepages-Usage(page)");
  std::printf("| %-5s %-20s| %-14s| %-11s %-17s %-21s|\n%s\n", "Chip", "", "Bus-Id", "AICore(%)",
              "Memory-Usage(MB)", "HBM-Usage(MB)", kThick);
  for (int device = 0; device < count; ++device) {
    const Memory memory = memory_of(device);
    char use[40];
    std::snprintf(use, sizeof use, "%-5zu/ %zu", memory.used, memory.total);
    std::printf("| %-5d %-20s| %-14s| %-11s %-17s %-21s|\n", device, chip_name(), "OK", kNone,
                kNone, "0    / 0");
    std::printf("| %-5d %-20s| %-14s| %-11s %-17s %-21s|\n%s\n", 0, "", kNone, "0", "0    / 0", use,
                kThick);
  }
  std::printf("| %-7s %-18s| %-14s| %-25s| %-24s|\n%s\n", "NPU", "Chip", "Process id",
              "Process name", "Process memory(MB)", kThick);
  for (int device = 0; device < count; ++device) {
    std::snprintf(text, sizeof text, "No running processes found in NPU %d", device);
    std::printf("| %-95s|\n%s\n", text, kThick);
  }
}

void list(int count) {
  field("Total Count", static_cast<size_t>(count));
  for (int device = 0; device < count; ++device) {
    std::puts("");
    field("NPU ID", static_cast<size_t>(device));
    field("Product Name", kNone);
    field("Serial Number", kNone);
    field("Chip Count", 1);
  }
}

void chips(int count) {
  std::printf("\t%-30s %-30s %-30s %-30s\n", "NPU ID", "Chip ID", "Chip Logic ID", "Chip Name");
  for (int device = 0; device < count; ++device) {
    std::printf("\t%-30d %-30d %-30d Ascend %-23s\n", device, 0, device, chip_name());
  }
}

void board(int device) {
  field("NPU ID", static_cast<size_t>(device));
  for (const char* name : {"Product Name", "Model", "Manufacturer", "Serial Number"})
    field(name, kNone);
  field("Software Version", OPENACLNN_VERSION);
  field("Firmware Version", kNone);
  field("Compatibility", "OK");
  for (const char* name : {"Board ID", "PCB ID", "BOM ID"}) field(name, kNone);
  field("Chip Count", 1);
  field("Faulty Chip Count", size_t{0});
  field("PCIe Bus Info", kNone);
  field("Chip Name", chip_name());
}

void memory(int device) {
  field("NPU ID", static_cast<size_t>(device));
  field("Chip Count", 1);
  std::puts("");
  field("DDR Capacity(MB)", size_t{0});
  field("HBM Capacity(MB)", memory_of(device).total);
  for (const char* name : {"HBM Clock Speed(MHz)", "HBM Temperature(C)", "HBM Manufacturer ID"})
    field(name, kNone);
  field("Chip ID", size_t{0});
}

void usages(int device) {
  const Memory use = memory_of(device);
  field("NPU ID", static_cast<size_t>(device));
  field("Chip Count", 1);
  std::puts("");
  field("HBM Capacity(MB)", use.total);
  field("HBM Usage Rate(%)", use.total == 0 ? 0 : 100 * use.used / use.total);
  field("Aicore Usage Rate(%)", size_t{0});
  field("Chip ID", size_t{0});
}

int refuse(const char* sentence, const char* word) {
  std::fprintf(stderr, "npu-smi: %s%s; `npu-smi` alone shows what there is\n", sentence, word);
  return 1;
}

int info(int argc, char** argv, int count) {
  const char *kind = nullptr, *id = nullptr;
  for (int i = 2; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "-l") == 0) return list(count), 0;
    if (std::strcmp(argv[i], "-m") == 0) return chips(count), 0;
    if (std::strcmp(argv[i], "-t") == 0 && more) {
      kind = argv[++i];
    } else if (std::strcmp(argv[i], "-i") == 0 && more) {
      id = argv[++i];
    } else if (std::strcmp(argv[i], "-c") == 0 && more) {
      ++i;  // each device has one chip
    } else {
      return refuse("unknown option ", argv[i]);
    }
  }
  if (kind == nullptr && id == nullptr) return table(count), 0;
  char* end = nullptr;
  const long device = id == nullptr ? -1 : std::strtol(id, &end, 10);
  if (device < 0 || device >= count || *end != '\0' || end == id)
    return refuse("-i must be the id of a device, but is ", id == nullptr ? "missing" : id);
  const auto chosen = static_cast<int>(device);
  if (kind != nullptr && std::strcmp(kind, "board") == 0) return board(chosen), 0;
  if (kind != nullptr && std::strcmp(kind, "memory") == 0) return memory(chosen), 0;
  if (kind != nullptr && std::strcmp(kind, "usages") == 0) return usages(chosen), 0;
  return refuse("-t must be board, memory or usages, but is ", kind == nullptr ? "missing" : kind);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "info") != 0) {
    std::fputs(kUsage, argc < 2 ? stdout : stderr);
    return argc < 2 ? 0 : 1;
  }
  uint32_t count = 0;
  aclInit(nullptr);
  aclrtGetDeviceCount(&count);
  const int status = info(argc, argv, static_cast<int>(count));
  aclFinalize();
  return status;
}

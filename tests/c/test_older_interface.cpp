// SPDX-License-Identifier: Apache-2.0
// The older interface: data buffers, descriptions, operators by type, models, allocators, dumps,
// profiling.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "acl/ops/acl_cblas.h"
#include "check.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

void data_buffers() {
  char memory[8];
  aclDataBuffer* buffer = aclCreateDataBuffer(memory, 8);
  CHECK_EQ(aclGetDataBufferAddr(buffer), memory);
  CHECK_EQ(aclGetDataBufferSizeV2(buffer), size_t{8});
  CHECK_EQ(aclUpdateDataBuffer(buffer, nullptr, 0), 0);
  CHECK(aclGetDataBufferAddr(buffer) == nullptr);
  CHECK_EQ(aclGetDataBufferSizeV2(buffer), size_t{0});
  CHECK(aclGetDataBufferAddr(nullptr) == nullptr);
  CHECK_EQ(aclGetDataBufferSizeV2(nullptr), size_t{0});
  CHECK_EQ(aclUpdateDataBuffer(nullptr, memory, 8), 100000);
  CHECK_EQ(aclDestroyDataBuffer(buffer), 0);
  CHECK_FAILS(aclDestroyDataBuffer(buffer), 100000, "dataBuffer 0x");
  CHECK_EQ(aclDestroyDataBuffer(nullptr), 100000);
  CHECK(aclGetDataBufferAddr(buffer) == nullptr);
  CHECK_TEXT("aclGetDataBufferAddr: dataBuffer 0x");
}

void descriptions() {
  const int64_t dims[] = {2, 3}, unknown[] = {2, -1};
  int64_t range[2] = {}, ranges[2][2] = {{1, 4}, {3, -1}}, one = 0;
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT16, 2, dims, ACL_FORMAT_ND);
  aclTensorDesc* dynamic = aclCreateTensorDesc(ACL_FLOAT, 2, unknown, ACL_FORMAT_NCHW);
  CHECK_EQ(aclGetTensorDescType(desc), ACL_FLOAT16);
  CHECK_EQ(aclGetTensorDescFormat(dynamic), ACL_FORMAT_NCHW);
  CHECK_EQ(aclGetTensorDescSize(desc), size_t{12});
  CHECK_EQ(aclGetTensorDescElementCount(desc), size_t{6});
  CHECK_EQ(aclGetTensorDescSize(dynamic), size_t{0});
  CHECK_EQ(aclGetTensorDescElementCount(dynamic), size_t{0});
  CHECK_EQ(aclGetTensorDescNumDims(desc), size_t{2});
  CHECK_EQ(aclGetTensorDescDim(desc, 1), 3);
  CHECK_EQ(aclGetTensorDescDim(desc, 2), -1);
  CHECK_EQ(aclGetTensorDescDimV2(desc, 0, &one), 0);
  CHECK_EQ(one, 2);
  CHECK_EQ(aclGetTensorDescDimV2(desc, 2, &one), 100000);
  CHECK_EQ(std::string(aclGetTensorDescName(desc)), "");
  aclSetTensorDescName(desc, "x");
  CHECK_EQ(std::string(aclGetTensorDescName(desc)), "x");
  CHECK_EQ(aclSetTensorShapeRange(dynamic, 2, ranges), 0);
  CHECK_EQ(aclGetTensorDescDimRange(dynamic, 1, 2, range), 0);
  CHECK(range[0] == 3 && range[1] == -1);
  CHECK_EQ(aclGetTensorDescDimRange(dynamic, 2, 2, range), 100000);
  CHECK_EQ(aclSetTensorShapeRange(dynamic, 2, nullptr), 100000);
  CHECK_EQ(aclSetTensorConst(desc, &one, 8), 0);
  CHECK_EQ(aclSetTensorConst(desc, nullptr, 8), 100000);
  CHECK_EQ(aclSetTensorConst(nullptr, &one, 8), 100000);
  CHECK_EQ(aclSetTensorFormat(desc, ACL_FORMAT_FRACTAL_NZ), 0);
  CHECK_EQ(aclSetTensorShape(desc, 2, dims), 0);
  CHECK_EQ(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST), 0);
  CHECK(aclCreateTensorDesc(ACL_FLOAT, 26, dims, ACL_FORMAT_ND) == nullptr);
  CHECK(aclCreateTensorDesc(ACL_FLOAT, 2, nullptr, ACL_FORMAT_ND) == nullptr);
  aclDestroyTensorDesc(dynamic);
  CHECK_EQ(aclGetTensorDescSize(dynamic), size_t{0});
  CHECK_TEXT("aclGetTensorDescSize: desc 0x");
  aclDestroyTensorDesc(desc);
  aclDestroyTensorDesc(nullptr);
}

// A refusal names the attributes as they were set; a call that is refused sets none.
void attributes() {
  const int64_t dims[] = {4}, whole[] = {1, 2};
  const float real[] = {0.5f, 2};
  const uint8_t flags[] = {1, 0};
  const int sizes[] = {2, 1};
  const int64_t* const lists[] = {whole, dims};
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT, 1, dims, ACL_FORMAT_ND);
  aclDataBuffer* none = aclCreateDataBuffer(nullptr, 0);
  aclopAttr* attr = aclopCreateAttr();
  CHECK_EQ(aclopSetAttrListBool(attr, "flags", 2, nullptr), 100000);
  CHECK_FAILS(aclopSetAttrListFloat(attr, "real", -1, real), 100000,
              "numValues must be at least 0, but got -1");
  CHECK_EQ(aclopSetAttrListListInt(attr, "lists", 2, nullptr, lists), 100000);
  CHECK_EQ(aclopSetAttrListListInt(attr, "lists", 2, sizes, nullptr), 100000);
  CHECK_EQ(aclopSetAttrDataType(nullptr, "dtype", ACL_FLOAT16), 100000);
  CHECK_EQ(aclopSetAttrDataType(attr, "dtype", ACL_FLOAT16), 0);
  CHECK_EQ(aclopSetAttrListBool(attr, "flags", 2, flags), 0);
  CHECK_EQ(aclopSetAttrListFloat(attr, "real", 2, real), 0);
  CHECK_EQ(aclopSetAttrListListInt(attr, "lists", 2, sizes, lists), 0);
  CHECK_FAILS(aclopExecuteV2("Unknown", 1, &desc, &none, 0, nullptr, nullptr, attr, nullptr),
              100024, "and dtype=1, flags=[1, 0], real=[0.500000, 2.000000], lists=[1, 2][4])");
  aclopDestroyAttr(attr);
  CHECK_EQ(aclDestroyDataBuffer(none), 0);
  aclDestroyTensorDesc(desc);
}

void operators_by_type() {
  const int64_t dims[] = {4};
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT, 1, dims, ACL_FORMAT_ND);
  void *a = nullptr, *b = nullptr;
  CHECK_EQ(aclrtMalloc(&a, 16, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMalloc(&b, 16, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMemset(a, 16, 7, 16), 0);
  aclDataBuffer *in = aclCreateDataBuffer(a, 16), *out = aclCreateDataBuffer(b, 16);
  aclopAttr* attr = aclopCreateAttr();
  const char* words[] = {"one", "two"};
  CHECK_EQ(aclopSetAttrListString(attr, "words", 2, words), 0);
  CHECK_EQ(aclopSetAttrListString(attr, "words", 2, nullptr), 100000);
  CHECK_EQ(aclopSetAttrListString(nullptr, "words", 2, words), 100000);
  CHECK_EQ(aclopSetAttrInt(attr, nullptr, 2), 100000);
  CHECK_EQ(aclopExecuteV2("Identity", 1, &desc, &in, 1, &desc, &out, attr, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(static_cast<char*>(b)[15], 7);
  CHECK_FAILS(aclopExecuteV2("Unknown", 1, &desc, &in, 1, &desc, &out, attr, nullptr), 100024,
              "opType Unknown is not supported (inputs [4] and words=[one, two]");
  CHECK_EQ(aclopExecuteV2(nullptr, 1, &desc, &in, 1, &desc, &out, attr, nullptr), 100000);
  CHECK_EQ(aclopExecuteV2("Identity", 1, nullptr, &in, 1, &desc, &out, attr, nullptr), 100000);
  CHECK_EQ(aclopExecuteV2("Identity", 1, &desc, nullptr, 1, &desc, &out, attr, nullptr), 100000);
  CHECK_EQ(aclopExecuteV2("Identity", -1, &desc, &in, 1, &desc, &out, attr, nullptr), 100000);
  const aclTensorDesc* const given = desc;
  CHECK_EQ(aclopCompile("Identity", 1, &given, 1, &given, attr, ACL_ENGINE_SYS, ACL_COMPILE_SYS,
                        nullptr),
           0);
  CHECK_EQ(
      aclopCompile("Unknown", 1, &given, 1, &given, attr, ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr),
      100024);
  CHECK_EQ(aclopSetModelDir("models"), 0);
  CHECK_EQ(aclopSetModelDir(nullptr), 100000);
  char value[16];
  CHECK_EQ(aclSetCompileopt(ACL_PRECISION_MODE, "must_keep"), 0);
  CHECK_EQ(aclGetCompileoptSize(ACL_PRECISION_MODE), size_t{10});
  CHECK_EQ(aclGetCompileopt(ACL_PRECISION_MODE, value, sizeof value), 0);
  CHECK_EQ(std::string(value), "must_keep");
  CHECK_EQ(aclGetCompileopt(ACL_PRECISION_MODE, value, 3), 100000);
  aclGraphDumpOption* option = aclCreateGraphDumpOpt();
  CHECK(option != nullptr);
  CHECK_EQ(aclDestroyGraphDumpOpt(option), 0);
  CHECK_EQ(aclDestroyGraphDumpOpt(option), 100000);
  CHECK_EQ(aclDestroyGraphDumpOpt(nullptr), 100000);
  aclopDestroyAttr(attr);
  CHECK_EQ(aclopSetAttrInt(attr, "x", 2), 100000);
  aclDestroyTensorDesc(desc);
  CHECK_EQ(aclopExecuteV2("Identity", 1, &desc, &in, 1, &desc, &out, nullptr, nullptr), 100000);
  CHECK_EQ(aclDestroyDataBuffer(in), 0);
  CHECK_EQ(aclDestroyDataBuffer(out), 0);
  CHECK_EQ(aclrtFree(a), 0);
  CHECK_EQ(aclrtFree(b), 0);
}

void refusals() {
  uint32_t model = 7;
  CHECK_FAILS(aclmdlLoadFromFile("m.om", &model), 200001, "aclmdlLoadFromFile: .om models hold");
  CHECK_EQ(model, 0u);
  CHECK_EQ(aclmdlLoadFromFile(nullptr, &model), 100000);
  CHECK_FAILS(aclmdlLoadFromFile("m.om", nullptr), 100000, "modelId must not be NULL");
  CHECK_FAILS(aclmdlExecute(1, nullptr, nullptr), 100011, "no model has this number");
  CHECK_EQ(aclmdlUnload(1), 100011);
  CHECK_FAILS(aclrtLaunchKernel(foreign, 1, nullptr, 0, nullptr), 200001,
              "aclrtLaunchKernel: kernels compiled for an NPU cannot run on a CPU");
  aclrtBinHandle binary = foreign;
  CHECK_EQ(aclrtBinaryLoadFromFile("k.o", nullptr, &binary), 200001);
  CHECK(binary == nullptr);
  CHECK(aclrtCreateBinary("k", 1) == nullptr);
  CHECK(aclmdlCreateAIPP(1) == nullptr);
  CHECK_FAILS(aclblasGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 1, 1, 1, nullptr, nullptr, 1,
                            ACL_FLOAT, nullptr, 1, ACL_FLOAT, nullptr, nullptr, 1, ACL_FLOAT,
                            ACL_COMPUTE_HIGH_PRECISION, nullptr),
              200001, "call aclnnMatmul");
}

void models() {
  aclmdlDesc* desc = aclmdlCreateDesc();
  aclmdlIODims dims;
  aclmdlBatch batch;
  aclmdlHW hw;
  size_t index = 9;
  CHECK_EQ(aclmdlGetNumInputs(desc) + aclmdlGetNumOutputs(desc), size_t{0});
  CHECK_EQ(aclmdlGetInputSizeByIndex(desc, 0) + aclmdlGetOutputSizeByIndex(desc, 0), size_t{0});
  CHECK_EQ(aclmdlGetInputDataType(desc, 0), ACL_DT_UNDEFINED);
  CHECK_EQ(aclmdlGetOutputDataType(desc, 0), ACL_DT_UNDEFINED);
  CHECK_EQ(aclmdlGetInputFormat(desc, 0), ACL_FORMAT_UNDEFINED);
  CHECK_EQ(aclmdlGetOutputFormat(desc, 0), ACL_FORMAT_UNDEFINED);
  CHECK_EQ(std::string(aclmdlGetInputNameByIndex(desc, 0)) + aclmdlGetOutputNameByIndex(desc, 0),
           "");
  CHECK_FAILS(aclmdlGetInputDims(desc, 0, &dims), 100000, "the description is empty");
  CHECK_EQ(dims.dimCount, size_t{0});
  CHECK_EQ(aclmdlGetOutputDims(desc, 0, &dims), 100000);
  CHECK_EQ(aclmdlGetCurOutputDims(desc, 0, nullptr), 100000);
  CHECK_EQ(aclmdlGetDynamicBatch(desc, &batch), 100000);
  CHECK_EQ(aclmdlGetDynamicHW(desc, 0, &hw), 100000);
  CHECK_EQ(aclmdlGetInputIndexByName(desc, "x", &index), 100000);
  CHECK_EQ(aclmdlDestroyDesc(desc), 0);
  CHECK_EQ(aclmdlDestroyDesc(desc), 100000);
  CHECK_EQ(aclmdlGetNumInputs(desc), size_t{0});
  aclmdlDataset* dataset = aclmdlCreateDataset();
  aclDataBuffer* buffer = aclCreateDataBuffer(nullptr, 0);
  CHECK_EQ(aclmdlAddDatasetBuffer(dataset, buffer), 0);
  CHECK_EQ(aclmdlAddDatasetBuffer(dataset, nullptr), 100000);
  CHECK_EQ(aclmdlAddDatasetBuffer(nullptr, buffer), 100000);
  CHECK_EQ(aclmdlGetDatasetNumBuffers(dataset), size_t{1});
  CHECK_EQ(aclmdlGetDatasetBuffer(dataset, 0), buffer);
  CHECK(aclmdlGetDatasetBuffer(dataset, 1) == nullptr);
  CHECK_EQ(aclmdlDestroyDataset(dataset), 0);
  CHECK_EQ(aclmdlDestroyDataset(dataset), 100000);
  CHECK_EQ(aclmdlGetDatasetNumBuffers(dataset), size_t{0});
  CHECK_EQ(aclDestroyDataBuffer(buffer), 0);
}

void* allocate(aclrtAllocator, size_t) { return nullptr; }
void release(aclrtAllocator, aclrtAllocatorBlock) {}
void* allocate_at(aclrtAllocator, size_t, aclrtAllocatorAddr) { return nullptr; }
void* address_of(aclrtAllocatorBlock) { return nullptr; }

void allocators() {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc(), got = nullptr;
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc a = nullptr;
  aclrtAllocatorFreeFunc b = nullptr;
  aclrtAllocatorAllocAdviseFunc c = nullptr;
  aclrtAllocatorGetAddrFromBlockFunc d = nullptr;
  const auto get = [&] { return aclrtAllocatorGetByStream(stream, &got, &object, &a, &b, &c, &d); };
  CHECK_FAILS(get(), 100000, "no allocator is registered for the stream");
  CHECK_FAILS(aclrtAllocatorRegister(stream, desc), 100000, "must have an object and functions");
  CHECK_EQ(aclrtAllocatorSetObjToDesc(desc, foreign), 0);
  CHECK_EQ(aclrtAllocatorSetAllocFuncToDesc(desc, allocate), 0);
  CHECK_EQ(aclrtAllocatorSetFreeFuncToDesc(desc, release), 0);
  CHECK_EQ(aclrtAllocatorSetAllocAdviseFuncToDesc(desc, allocate_at), 0);
  CHECK_EQ(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, address_of), 0);
  CHECK_EQ(aclrtAllocatorRegister(stream, desc), 0);
  CHECK_EQ(get(), 0);
  CHECK(got == desc && object == foreign && a == allocate && b == release && c == allocate_at &&
        d == address_of);
  CHECK_EQ(aclrtAllocatorSetObjToDesc(desc, nullptr), 100000);
  CHECK_EQ(aclrtAllocatorSetAllocFuncToDesc(nullptr, allocate), 100000);
  CHECK_EQ(aclrtAllocatorSetFreeFuncToDesc(desc, nullptr), 100000);
  CHECK_EQ(aclrtAllocatorSetAllocAdviseFuncToDesc(foreign, allocate_at), 100000);
  CHECK_EQ(aclrtAllocatorRegister(nullptr, desc), 100000);
  CHECK_EQ(aclrtAllocatorRegister(foreign, desc), 107017);
  CHECK_EQ(aclrtAllocatorGetByStream(stream, &got, &object, &a, &b, &c, nullptr), 100000);
  CHECK_EQ(aclrtAllocatorDestroyDesc(desc), 0);
  CHECK_EQ(aclrtAllocatorDestroyDesc(desc), 100000);
  CHECK_EQ(get(), 0);  // the stream has a copy
  CHECK_EQ(aclrtAllocatorUnregister(stream), 0);
  CHECK_EQ(aclrtAllocatorUnregister(stream), 0);
  CHECK_EQ(aclrtAllocatorUnregister(nullptr), 100000);
  CHECK_EQ(get(), 100000);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

int32_t receive(const acldumpChunk*, int32_t) { return 0; }

void dumps(const std::string& folder) {
  CHECK_EQ(acldumpRegCallback(receive, 0), 0);
  CHECK_EQ(acldumpRegCallback(receive, 1), 100000);
  CHECK_EQ(acldumpRegCallback(nullptr, 0), 100000);
  acldumpUnregCallback();
  CHECK_FAILS(aclopStopDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS), 100045,
              "call aclopStartDumpArgs first");
  CHECK_EQ(aclopStartDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS, folder.c_str()), 0);
  CHECK_EQ(aclopStopDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS), 0);
  CHECK_EQ(aclopStartDumpArgs(2, folder.c_str()), 100000);
  CHECK_EQ(aclopStartDumpArgs(1, nullptr), 100000);
  CHECK_EQ(aclopStartDumpArgs(1, "/no/such/folder"), 100000);
  CHECK_EQ(aclopStopDumpArgs(2), 100000);
  char path[64];
  CHECK(acldumpGetPath(DATA_DUMP) == nullptr);
  CHECK_EQ(acldumpGetExceptionInfoPath(path, sizeof path), 100045);
  CHECK_EQ(acldumpGetExceptionInfoPath(nullptr, sizeof path), 100000);
  CHECK_EQ(acldumpSaveExceptionInfo("f", "t", nullptr, 0), 100045);
  CHECK_EQ(acldumpSaveExceptionInfo(nullptr, "t", nullptr, 0), 100000);
}

void profiling(const std::string& folder) {
  const char* path = folder.c_str();
  uint32_t devices[] = {0}, wrong[] = {9}, range = 0;
  const auto metrics = ACL_AICORE_PIPE_UTILIZATION;
  CHECK_EQ(aclprofFinalize(), 100043);
  CHECK_FAILS(aclprofInit(path, 3), 100000, "the length must be that of profilerResultPath");
  CHECK_EQ(aclprofInit(nullptr, 3), 100000);
  CHECK_EQ(aclprofInit("/no/such/folder", 15), 500005);
  aclprofConfig* config = aclprofCreateConfig(devices, 1, metrics, nullptr, ACL_PROF_ACL_API);
  CHECK(config != nullptr);
  CHECK_FAILS(aclprofStart(config), 100043, "call aclprofInit first");
  CHECK_EQ(aclprofInit(path, folder.size()), 0);
  CHECK_EQ(aclprofInit(path, folder.size()), 100042);
  CHECK(aclprofCreateStamp() == nullptr);
  CHECK_EQ(aclprofStart(config), 0);
  CHECK_EQ(aclprofStart(config), 100042);
  CHECK_EQ(aclprofStart(nullptr), 100000);
  void* stamp = aclprofCreateStamp();
  CHECK(stamp != nullptr);
  CHECK_EQ(aclprofSetStampTraceMessage(stamp, "hello", 5), 0);
  CHECK_EQ(aclprofSetStampTraceMessage(stamp, nullptr, 5), 200006);
  CHECK_EQ(aclprofMark(stamp), 0);
  CHECK_EQ(aclprofMark(nullptr), 200006);
  CHECK_EQ(aclprofPop(), 200006);
  CHECK_EQ(aclprofPush(stamp), 0);
  CHECK_EQ(aclprofPop(), 0);
  CHECK_EQ(aclprofRangeStart(stamp, &range), 0);
  CHECK_EQ(aclprofRangeStart(stamp, nullptr), 200006);
  CHECK_EQ(aclprofRangeStop(range), 0);
  CHECK_EQ(aclprofRangeStop(range), 200006);
  CHECK_EQ(aclprofMarkEx("m", 1, nullptr), 0);
  CHECK_EQ(aclprofMarkEx(nullptr, 1, nullptr), 100000);
  CHECK_EQ(aclprofMarkEx("m", 1, foreign), 107017);
  aclprofDestroyStamp(stamp);
  CHECK_EQ(aclprofPush(stamp), 200006);
  aclprofStepInfo* step = aclprofCreateStepInfo();
  CHECK_EQ(aclprofGetStepTimestamp(step, ACL_STEP_START, nullptr), 0);
  CHECK_EQ(aclprofGetStepTimestamp(step, static_cast<aclprofStepTag>(2), nullptr), 100000);
  CHECK_EQ(aclprofGetStepTimestamp(nullptr, ACL_STEP_START, nullptr), 100000);
  aclprofDestroyStepInfo(step);
  CHECK_EQ(aclprofGetStepTimestamp(step, ACL_STEP_END, nullptr), 100000);
  char from[8] = {}, to[8] = {};
  const auto within = ACL_MEMCPY_DEVICE_TO_DEVICE;
  CHECK_EQ(aclrtMemcpyAsync(to, 8, from, 8, within, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(aclprofStop(config), 0);
  CHECK_EQ(aclprofStop(config), 100043);
  int copies = 0, marks = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      copies += line.find("aclrtMemcpyAsync") != std::string::npos;
      marks += entry.path().filename() == "marks.tsv";
    }
  }
  CHECK_EQ(copies, 1);
  CHECK_EQ(marks, 4);                                              // Mark, Pop, RangeStop, MarkEx
  CHECK_EQ(aclrtMemcpyAsync(to, 8, from, 8, within, nullptr), 0);  // not recorded
  CHECK_EQ(aclprofFinalize(), 0);
  CHECK_EQ(aclprofDestroyConfig(config), 0);
  CHECK_EQ(aclprofDestroyConfig(config), 100000);
  CHECK_EQ(aclprofDestroyConfig(nullptr), 100000);
  CHECK(aclprofCreateConfig(wrong, 1, metrics, nullptr, 0) == nullptr);
  CHECK(aclprofCreateConfig(nullptr, 1, metrics, nullptr, 0) == nullptr);
  CHECK(aclprofCreateConfig(devices, 1, static_cast<aclprofAicoreMetrics>(9), nullptr, 0) ==
        nullptr);
  CHECK_EQ(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "200MB", 5), 0);
  CHECK_EQ(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "200MB", 4), 100000);
  CHECK_EQ(aclprofSetConfig(ACL_PROF_ARGS_MAX, "200MB", 5), 100000);
  CHECK_EQ(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, nullptr, 5), 100000);
  aclprofSubscribeConfig* subscribed = aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, nullptr);
  CHECK_EQ(aclprofModelSubscribe(1, subscribed), 100011);
  CHECK_EQ(aclprofModelUnSubscribe(1), 100011);
  CHECK_EQ(aclprofDestroySubscribeConfig(subscribed), 0);
  CHECK_EQ(aclprofDestroySubscribeConfig(subscribed), 100000);
  CHECK(aclprofCreateSubscribeConfig(2, ACL_AICORE_NONE, nullptr) == nullptr);
  size_t size = 0;
  uint32_t count = 9;
  CHECK_EQ(aclprofGetOpDescSize(&size), 0);
  CHECK(size > 0);
  CHECK_EQ(aclprofGetOpDescSize(nullptr), 100000);
  CHECK_EQ(aclprofGetOpNum(&size, 8, &count), 100000);
  CHECK_EQ(count, 0u);
  CHECK_EQ(aclprofGetOpNameLen(&size, 8, 0, &size), 100000);
  CHECK_EQ(aclprofGetOpStart(nullptr, 0, 0) + aclprofGetOpEnd(nullptr, 0, 0), uint64_t{0});
  CHECK_EQ(aclprofGetOpDuration(nullptr, 0, 0) + aclprofGetModelId(nullptr, 0, 0), uint64_t{0});
}

}  // namespace

int main() {
  char name[] = "/tmp/openaclnn-test-XXXXXX";
  const std::string folder = mkdtemp(name);
  CHECK_EQ(aclrtSetDevice(0), 0);
  data_buffers();
  descriptions();
  attributes();
  operators_by_type();
  refusals();
  models();
  allocators();
  dumps(folder);
  profiling(folder);
  CHECK_EQ(aclrtResetDevice(0), 0);
  rmdir(folder.c_str());
  return check_result();
}

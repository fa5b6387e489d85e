// SPDX-License-Identifier: Apache-2.0
// The older interface: data buffers, descriptions, operators by type, models, allocators.
#include <cstring>
#include <string>

#include "acl/acl_op_compiler.h"
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

}  // namespace

int main() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  data_buffers();
  descriptions();
  attributes();
  operators_by_type();
  refusals();
  models();
  allocators();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}

// SPDX-License-Identifier: Apache-2.0
// Models that a program builds: bound streams, streams that others activate, branches, labels.
#include "models.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

// Operators, copies and events of two streams run when the model does, each time.
void tasks() {
  constexpr size_t kCount = 500, kBytes = kCount * sizeof(float);
  float *x = floats(kCount, -2), *y = floats(kCount), *z = floats(kCount);
  aclrtEvent event = new_event();
  Model model(2);
  CHECK_EQ(leaky(x, y, kCount, 0.5f, model.streams[0]), 0);
  CHECK_EQ(aclrtRecordEvent(event, model.streams[0]), 0);
  CHECK_EQ(aclrtActiveStream(model.streams[1], model.streams[0]), 0);
  CHECK_EQ(aclrtStreamWaitEvent(model.streams[1], event), 0);
  CHECK_EQ(aclrtMemcpyAsync(z, kBytes, y, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, model.streams[1]),
           0);
  CHECK_EQ(aclrtSynchronizeStream(model.streams[0]), 0);  // at once
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  CHECK_EQ(aclrtStreamQuery(model.streams[0], &status), 0);
  CHECK_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  CHECK_EQ(y[0], 0.0f);
  // Meanwhile other streams work, the default one among them.
  CHECK_EQ(leaky(x, z, kCount, 1, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(z[0], -2.0f);
  CHECK_FAILS(aclmdlRIExecuteAsync(model.model, nullptr), 107026,
              "modelRI is still being built; call aclmdlRIBuildEnd first");
  model.built();
  CHECK_EQ(z[0], -2.0f);
  model.run();
  CHECK_EQ(y[0], -1.0f);
  CHECK_EQ(z[kCount - 1], -1.0f);
  for (size_t i = 0; i < kCount; ++i) x[i] = -8;
  aclrtStream other = new_stream();
  replay(model.model, other);
  CHECK_EQ(z[kCount - 1], -4.0f);
  CHECK_FAILS(leaky(x, y, kCount, 0.5f, model.streams[0]), 361001,
              "the model of the stream is built and takes no more work");
  CHECK_EQ(aclrtDestroyStream(other), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  for (float* p : {x, y, z}) CHECK_EQ(aclrtFree(p), 0);
}

// *left cond *right sends the first stream to the second.
template <class T>
void branch(aclrtCondition condition, T left, T right, bool taken) {
  T* values = numbers<T>({left, right});
  int before = 0, rest = 0, then = 0;
  Model model(2);
  add(model.streams[0], &before);
  CHECK_EQ(aclrtSwitchStream(values, condition, values + 1,
                             sizeof(T) == 8 ? ACL_RT_SWITCH_INT64 : ACL_RT_SWITCH_INT32,
                             model.streams[1], nullptr, model.streams[0]),
           0);
  add(model.streams[0], &rest);
  add(model.streams[1], &then);
  model.built();
  model.run();
  CHECK_EQ(before, 1);
  CHECK_EQ(rest, taken ? 0 : 1);
  CHECK_EQ(then, taken ? 1 : 0);
  values[0] = right, values[1] = left;  // read when it runs
  model.run();
  CHECK_EQ(before, 2);
  CHECK_EQ(rest + then, 2);
  CHECK_EQ(aclrtFree(values), 0);
}

void branches() {
  constexpr int64_t kAbove32 = int64_t{1} << 33;
  const auto all = [](int64_t left, int64_t right, std::vector<bool> taken) {
    for (int i = 0; i < 6; ++i) {
      const auto condition = static_cast<aclrtCondition>(i);
      branch<int64_t>(condition, left * kAbove32, right * kAbove32, taken[static_cast<size_t>(i)]);
      branch<int32_t>(condition, static_cast<int32_t>(left), static_cast<int32_t>(right),
                      taken[static_cast<size_t>(i)]);
    }
  };
  all(-1, 1, {false, true, false, false, true, true});
  all(1, 1, {true, false, false, true, false, true});
  all(2, 1, {false, true, true, true, false, false});
}

// A switch of two cases, as labels of one stream.
void labels() {
  uint32_t* index = numbers<uint32_t>({0});
  aclrtLabel label[3] = {};
  for (aclrtLabel& one : label) CHECK_EQ(aclrtCreateLabel(&one), 0);
  aclrtLabelList cases = nullptr, end = nullptr;
  CHECK_EQ(aclrtCreateLabelList(label, 2, &cases), 0);
  CHECK_EQ(aclrtCreateLabelList(label + 2, 1, &end), 0);
  int first = 0, second = 0, after = 0;
  Model model(1);
  aclrtStream stream = model.streams[0];
  CHECK_EQ(aclrtSwitchLabelByIndex(index, 2, cases, stream), 0);
  CHECK_EQ(aclrtSetLabel(label[0], stream), 0);
  add(stream, &first);
  CHECK_EQ(aclrtSwitchLabelByIndex(index, 1, end, stream), 0);
  CHECK_EQ(aclrtSetLabel(label[1], stream), 0);
  add(stream, &second);
  CHECK_EQ(aclrtSetLabel(label[2], stream), 0);
  add(stream, &after);
  model.built();
  for (aclrtLabel one : label) CHECK_EQ(aclrtDestroyLabel(one), 0);
  CHECK_EQ(aclrtDestroyLabelList(cases), 0);
  CHECK_EQ(aclrtDestroyLabelList(end), 0);
  const int wanted[][2] = {{1, 0}, {0, 1}, {0, 1}};  // too large: the last
  for (uint32_t i = 0; i < 3; ++i) {
    *index = i;
    first = second = 0;
    model.run();
    CHECK_EQ(first, wanted[i][0]);
    CHECK_EQ(second, wanted[i][1]);
  }
  CHECK_EQ(after, 3);
  CHECK_EQ(aclrtFree(index), 0);
}

// A label behind the jump is a loop; one on another stream goes on there.
void loops() {
  struct Loop {
    uint32_t* index;
    int count;
  } loop{numbers<uint32_t>({0}), 0};
  aclrtLabel label[2] = {};
  for (aclrtLabel& one : label) CHECK_EQ(aclrtCreateLabel(&one), 0);
  aclrtLabelList list = nullptr;
  CHECK_EQ(aclrtCreateLabelList(label, 2, &list), 0);
  int rest = 0, elsewhere = 0;
  Model model(2);
  CHECK_EQ(aclrtSetLabel(label[0], model.streams[0]), 0);
  CHECK_EQ(aclrtLaunchHostFunc(
               model.streams[0],
               [](void* own) {
                 Loop& self = *static_cast<Loop*>(own);
                 *self.index = ++self.count == 4;
               },
               &loop),
           0);
  CHECK_EQ(aclrtSwitchLabelByIndex(loop.index, 2, list, model.streams[0]), 0);
  add(model.streams[0], &rest);
  CHECK_EQ(aclrtSetLabel(label[1], model.streams[1]), 0);
  add(model.streams[1], &elsewhere);
  model.built();
  model.run();
  CHECK_EQ(loop.count, 4);
  CHECK_EQ(rest, 0);
  CHECK_EQ(elsewhere, 1);
  for (aclrtLabel one : label) CHECK_EQ(aclrtDestroyLabel(one), 0);
  CHECK_EQ(aclrtDestroyLabelList(list), 0);
  CHECK_EQ(aclrtFree(loop.index), 0);
}

void lost_label() {
  uint32_t* index = numbers<uint32_t>({0});
  aclrtLabel label = nullptr;
  aclrtLabelList list = nullptr;
  CHECK_EQ(aclrtCreateLabel(&label), 0);
  CHECK_EQ(aclrtCreateLabelList(&label, 1, &list), 0);
  {
    Model model(1);
    CHECK_EQ(aclrtSwitchLabelByIndex(index, 1, list, model.streams[0]), 0);
    model.built();
    CHECK_FAILS(aclmdlRIExecute(model.model, -1), 507031,
                "the label was not set on a stream of the model");
  }
  CHECK_EQ(aclrtDestroyLabel(label), 0);
  CHECK_EQ(aclrtDestroyLabelList(list), 0);
  CHECK_EQ(aclrtFree(index), 0);
}

void refusals() {
  aclmdlRI model = nullptr;
  aclrtStream plain = new_stream(), held = held_stream(), apart = held_stream();
  CHECK_EQ(aclmdlRIBuildBegin(nullptr, 0), 100000);
  CHECK_EQ(aclmdlRIBuildBegin(&model, 1), 107000);
  CHECK_EQ(aclmdlRIBuildBegin(&model, 0), 0);
  CHECK_EQ(aclmdlRIBindStream(nullptr, held, 0), 100000);
  CHECK_EQ(aclmdlRIBindStream(model, nullptr, 0), 100000);
  CHECK_EQ(aclmdlRIBindStream(foreign, held, 0), 107017);
  CHECK_EQ(aclmdlRIBindStream(model, foreign, 0), 107017);
  CHECK_EQ(aclmdlRIBindStream(model, held, 7), 107000);
  CHECK_FAILS(aclmdlRIBindStream(model, plain, 0), 107000,
              "stream must be created with ACL_STREAM_PERSISTENT");
  CHECK_FAILS(aclmdlRIBuildEnd(model, nullptr), 107005, "modelRI has no stream");
  CHECK_EQ(aclmdlRIBindStream(model, held, 0), 0);
  CHECK_FAILS(aclmdlRIBindStream(model, held, 0), 107000, "bound to a model already");
  CHECK_EQ(aclmdlRICaptureBegin(held, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 107000);
  aclmdlRI none = nullptr;
  CHECK_EQ(aclmdlRICaptureEnd(held, &none), 107029);
  CHECK_EQ(aclmdlRIEndTask(model, nullptr), 100000);
  CHECK_EQ(aclmdlRIEndTask(nullptr, held), 100000);
  aclrtStreamStatus status;
  aclmdlRICaptureStatus capture;
  CHECK_EQ(aclrtStreamQuery(held, &status), 0);
  CHECK_EQ(aclmdlRICaptureGetInfo(held, &capture, nullptr), 0);
  CHECK_EQ(capture, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  CHECK_EQ(aclrtDestroyStream(held), 0);  // leaves the model
  CHECK_EQ(aclmdlRIDestroy(model), 0);

  CHECK_EQ(aclmdlRIBuildBegin(&model, 0), 0);
  held = held_stream();
  CHECK_EQ(aclmdlRIBindStream(model, held, 0), 0);
  CHECK_FAILS(aclmdlRIEndTask(model, apart), 107005, "stream is not bound to modelRI");
  CHECK_EQ(aclmdlRIUnbindStream(model, apart), 107005);
  CHECK_FAILS(aclrtActiveStream(apart, held), 107005, "must be bound to a model");
  CHECK_EQ(aclrtActiveStream(held, apart), 107005);
  CHECK_EQ(aclrtActiveStream(nullptr, held), 100000);
  CHECK_EQ(aclrtActiveStream(held, nullptr), 100000);
  int32_t* values = numbers<int32_t>({1, 2});
  const auto change = [&](void* left, int condition, void* right, int type, aclrtStream then,
                          aclrtStream otherwise) {
    return aclrtSwitchStream(left, static_cast<aclrtCondition>(condition), right,
                             static_cast<aclrtCompareDataType>(type), then, otherwise, held);
  };
  CHECK_EQ(change(nullptr, 0, values, 0, held, nullptr), 100000);
  CHECK_EQ(change(values, 0, nullptr, 0, held, nullptr), 100000);
  CHECK_EQ(change(foreign, 0, values, 0, held, nullptr), 107000);
  CHECK_EQ(change(values, 6, values, 0, held, nullptr), 100000);
  CHECK_EQ(change(values, 0, values, 2, held, nullptr), 100000);
  CHECK_EQ(change(values, 0, values, 0, nullptr, nullptr), 100000);
  CHECK_FAILS(change(values, 0, values, 0, held, held), 100000, "falseStream must be NULL");
  aclrtLabel label = nullptr;
  aclrtLabelList list = nullptr;
  CHECK_EQ(aclrtCreateLabel(nullptr), 100000);
  CHECK_EQ(aclrtCreateLabel(&label), 0);
  CHECK_EQ(aclrtSetLabel(nullptr, held), 100000);
  CHECK_EQ(aclrtSetLabel(label, nullptr), 100000);
  CHECK_EQ(aclrtSetLabel(label, plain), 107005);
  CHECK_EQ(aclrtSetLabel(foreign, held), 107017);
  CHECK_EQ(aclrtCreateLabelList(nullptr, 1, &list), 100000);
  CHECK_EQ(aclrtCreateLabelList(&label, 0, &list), 100000);
  CHECK_EQ(aclrtCreateLabelList(&label, 65536, &list), 100000);
  CHECK_EQ(aclrtCreateLabelList(&label, 1, nullptr), 100000);
  CHECK_EQ(aclrtCreateLabelList(&label, 1, &list), 0);
  CHECK_EQ(aclrtSwitchLabelByIndex(nullptr, 1, list, held), 100000);
  CHECK_EQ(aclrtSwitchLabelByIndex(values, 1, nullptr, held), 100000);
  CHECK_EQ(aclrtSwitchLabelByIndex(values, 1, list, nullptr), 100000);
  CHECK_EQ(aclrtSwitchLabelByIndex(values, 2, list, held), 107000);
  CHECK_EQ(aclrtSwitchLabelByIndex(foreign, 1, list, held), 107000);
  CHECK_EQ(aclrtDestroyLabel(nullptr), 100000);
  CHECK_EQ(aclrtDestroyLabel(label), 0);
  CHECK_EQ(aclrtDestroyLabel(label), 107017);
  CHECK_EQ(aclrtDestroyLabelList(list), 0);
  CHECK_EQ(aclrtDestroyLabelList(list), 107017);
  CHECK_FAILS(aclmdlRIBuildEnd(model, values), 100000, "reserve must be NULL");
  CHECK_EQ(aclmdlRIBuildEnd(model, nullptr), 0);
  CHECK_FAILS(aclmdlRIBuildEnd(model, nullptr), 107000, "modelRI is built already");
  CHECK_EQ(aclmdlRIDestroy(model), 0);  // unbinds
  CHECK_EQ(aclmdlRIUnbindStream(model, held), 107017);
  begin(plain);
  CHECK_EQ(aclrtLaunchHostFunc(plain, add_one, values), 0);
  aclmdlRI captured = end(plain);
  CHECK_FAILS(aclmdlRIBindStream(captured, held, 0), 107000, "must be of aclmdlRIBuildBegin");
  CHECK_EQ(aclmdlRIDestroy(captured), 0);
  for (aclrtStream stream : {plain, held, apart}) CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtFree(values), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  tasks();
  branches();
  labels();
  loops();
  lost_label();
  refusals();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}

// SPDX-License-Identifier: Apache-2.0
// Models that a program builds from streams: what is submitted to a bound stream belongs to the
// model and runs when that is executed.
#ifndef OPENACLNN_ACL_RT_MODELS_H
#define OPENACLNN_ACL_RT_MODELS_H

#include <stddef.h>
#include <stdint.h>

#include "acl/rt/graph.h"
#include "acl/rt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* aclrtLabel;
typedef void* aclrtLabelList;

typedef enum {
  ACL_RT_EQUAL = 0,
  ACL_RT_NOT_EQUAL = 1,
  ACL_RT_GREATER = 2,
  ACL_RT_GREATER_OR_EQUAL = 3,
  ACL_RT_LESS = 4,
  ACL_RT_LESS_OR_EQUAL = 5
} aclrtCondition;

typedef enum { ACL_RT_SWITCH_INT32 = 0, ACL_RT_SWITCH_INT64 = 1 } aclrtCompareDataType;

// In this order: BuildBegin, BindStream, the tasks, EndTask, BuildEnd, aclmdlRIExecute any number
// of times, UnbindStream, aclmdlRIDestroy. flag and reserve: 0.
ACL_FUNC_VISIBILITY aclError aclmdlRIBuildBegin(aclmdlRI* modelRI, uint32_t flag);
// A stream made with ACL_STREAM_PERSISTENT. flag: ACL_MODEL_STREAM_FLAG_HEAD, it starts with the
// model; ACL_MODEL_STREAM_FLAG_DEFAULT, when another one activates it.
ACL_FUNC_VISIBILITY aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream,
                                                uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream);
// The last task of the stream.
ACL_FUNC_VISIBILITY aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void* reserve);

// ---- Tasks that say what runs next; all streams are of one model ----

ACL_FUNC_VISIBILITY aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream);
// Where *leftValue is so to *rightValue, trueStream runs instead of the rest of the stream.
// falseStream: NULL. Values are in device memory.
ACL_FUNC_VISIBILITY aclError aclrtSwitchStream(void* leftValue, aclrtCondition cond,
                                               void* rightValue, aclrtCompareDataType dataType,
                                               aclrtStream trueStream, aclrtStream falseStream,
                                               aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtCreateLabel(aclrtLabel* label);
ACL_FUNC_VISIBILITY aclError aclrtDestroyLabel(aclrtLabel label);
// The place in the stream after what was submitted before.
ACL_FUNC_VISIBILITY aclError aclrtSetLabel(aclrtLabel label, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtCreateLabelList(aclrtLabel* labels, size_t num,
                                                  aclrtLabelList* labelList);
ACL_FUNC_VISIBILITY aclError aclrtDestroyLabelList(aclrtLabelList labelList);
// Goes on at label *ptr of the list, a uint32_t in device memory; if that is maxValue or more, at
// the last. maxValue: the number of labels.
ACL_FUNC_VISIBILITY aclError aclrtSwitchLabelByIndex(void* ptr, uint32_t maxValue,
                                                     aclrtLabelList labelList, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
// Attributes of operators by type: as values, and as text for refusals.
#include <utility>

#include "acl/acl_op.h"
#include "core/acl/description.h"
#include "core/support/api_guard.h"

using namespace openaclnn;

namespace openaclnn {

HandlePool<aclopAttr>& attributes() { return pool_of<aclopAttr>(1 << 16); }

}  // namespace openaclnn

namespace {

template <class Show>
aclError set_attribute(const char* call, aclopAttr* handle, const char* name, Show show) {
  return guarded(call, ACL_ERROR_BAD_ALLOC,
                 [&] {
                   HandlePool<aclopAttr>::Hold attribute;
                   Status status = find_object(attributes(), call, "attr", handle, &attribute);
                   if (status.ok()) status = not_null(call, "attrName", name);
                   if (!status.ok()) return status;
                   std::string text = attribute->text.empty() ? "" : ", ";
                   text.append(name) += '=';
                   Attribute kept{name, {}, {}, {}};
                   status = show(text, kept);
                   if (!status.ok()) return status;
                   attribute->values.push_back(std::move(kept));
                   attribute->text += text;
                   return status;
                 })
      .code();
}

template <class T>
void keep(Attribute& kept, const T* values, int count) {
  kept.integers.assign(values, values + count);
  kept.reals.assign(values, values + count);
}

template <class T>
aclError set_number(const char* call, aclopAttr* attr, const char* name, T value) {
  return set_attribute(call, attr, name, [&](std::string& text, Attribute& kept) {
    text += std::to_string(value);
    keep(kept, &value, 1);
    return Status();
  });
}

// `counted`: the name of the argument that has the length of values.
template <class T>
Status check_list(const char* call, const char* counted, int count, const T* values) {
  if (count < 0)
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "%s must be at least 0, but got %d", counted, count);
  return count == 0 ? Status() : not_null(call, "values", values);
}

template <class T>
Status show_list(const char* call, int count, const T* values, std::string& text) {
  if (Status status = check_list(call, "numValues", count, values); !status.ok()) return status;
  text += '[';
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  text += ']';
  return {};
}

template <class T>
aclError set_list(const char* call, aclopAttr* attr, const char* name, int count, const T* values) {
  return set_attribute(call, attr, name, [&](std::string& text, Attribute& kept) {
    const Status status = show_list(call, count, values, text);
    if (status.ok() && count > 0) keep(kept, values, count);
    return status;
  });
}

}  // namespace

aclopAttr* aclopCreateAttr(void) {
  aclopAttr* made = attributes().create();
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, "aclopCreateAttr", "too many live objects")
      .null();
}

void aclopDestroyAttr(const aclopAttr* attr) { attributes().destroy(attr); }

aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName, uint8_t attrValue) {
  return set_number("aclopSetAttrBool", attr, attrName, static_cast<int>(attrValue));
}

aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue) {
  return set_number("aclopSetAttrInt", attr, attrName, attrValue);
}

aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue) {
  return set_number("aclopSetAttrFloat", attr, attrName, attrValue);
}

aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName, aclDataType attrValue) {
  return set_number("aclopSetAttrDataType", attr, attrName, static_cast<int>(attrValue));
}

aclError aclopSetAttrString(aclopAttr* attr, const char* attrName, const char* attrValue) {
  constexpr const char* call = "aclopSetAttrString";
  return set_attribute(call, attr, attrName, [&](std::string& text, Attribute& kept) {
    if (Status status = not_null(call, "attrValue", attrValue); !status.ok()) return status;
    text += attrValue;
    kept.text = attrValue;
    return Status();
  });
}

aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues,
                              const uint8_t* values) {
  return set_list("aclopSetAttrListBool", attr, attrName, numValues, values);
}

aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues,
                             const int64_t* values) {
  return set_list("aclopSetAttrListInt", attr, attrName, numValues, values);
}

aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues,
                               const float* values) {
  return set_list("aclopSetAttrListFloat", attr, attrName, numValues, values);
}

aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists,
                                 const int* numValues, const int64_t* const values[]) {
  constexpr const char* call = "aclopSetAttrListListInt";
  return set_attribute(call, attr, attrName, [&](std::string& text, Attribute&) {
    Status status = numLists > 0 ? not_null(call, "numValues", numValues) : Status();
    if (status.ok()) status = check_list(call, "numLists", numLists, values);
    for (int i = 0; i < numLists && status.ok(); ++i) {
      status = show_list(call, numValues[i], values[i], text);
    }
    return status;
  });
}

aclError aclopSetAttrListString(aclopAttr* attr, const char* attrName, int numValues,
                                const char** values) {
  constexpr const char* call = "aclopSetAttrListString";
  return set_attribute(call, attr, attrName, [&](std::string& text, Attribute&) {
    if (Status status = check_list(call, "numValues", numValues, values); !status.ok())
      return status;
    text += '[';
    for (int i = 0; i < numValues; ++i) {
      if (Status status = not_null(call, "values[i]", values[i]); !status.ok()) return status;
      if (i > 0) text += ", ";
      text += values[i];
    }
    text += ']';
    return Status();
  });
}

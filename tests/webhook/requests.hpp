#pragma once
// AdmissionRequests for tests, from short pieces of JSON.

#include "webhook/review.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster::testing {

inline kube::Json json(const std::string& text) {
  const auto parsed = kube::Json::parse(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().message);
  return parsed ? *parsed : kube::Json();
}

inline webhook::AdmissionRequest create(const std::string& group, const std::string& kind,
                                        const kube::Json& object, const std::string& ns = "team") {
  webhook::AdmissionRequest request;
  request.uid = "u-1";
  request.kind = {group, kind};
  request.ns = Namespace(ns);
  request.operation = webhook::Operation::kCreate;
  request.username = "jane";
  request.object = object;
  return request;
}

inline webhook::AdmissionRequest update(const std::string& group, const std::string& kind,
                                        const kube::Json& before, const kube::Json& now,
                                        const std::string& sub_resource = "") {
  webhook::AdmissionRequest request = create(group, kind, now);
  request.operation = webhook::Operation::kUpdate;
  request.old_object = before;
  request.sub_resource = sub_resource;
  return request;
}

/// `text` with every `from` replaced.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  std::size_t at = 0;
  bool found = false;
  while ((at = text.find(from, at)) != std::string::npos) {
    text.replace(at, from.size(), to);
    at += to.size();
    found = true;
  }
  EXPECT_TRUE(found) << from << " is not in " << text;
  return text;
}

}  // namespace muster::testing

// The fields that decide knows, held against the shipped CRDs. What it says of others is in
// tests/scenarios/unknown-fields.yaml.

#include "cli/unknown_fields.hpp"

#include "cli/text_file.hpp"
#include "kube/codec/yaml.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

using kube::Json;

struct Crd {
  ManifestKind kind;
  const char* file;
};

constexpr Crd kCrds[] = {{ManifestKind::kResourceFlavor, "resourceflavors"},
                         {ManifestKind::kClusterQueue, "clusterqueues"},
                         {ManifestKind::kCohort, "cohorts"},
                         {ManifestKind::kLocalQueue, "localqueues"},
                         {ManifestKind::kWorkloadPriorityClass, "workloadpriorityclasses"},
                         {ManifestKind::kTopology, "topologies"},
                         {ManifestKind::kAdmissionCheck, "admissionchecks"},
                         {ManifestKind::kWorkload, "workloads"}};

/// Every property, in dotted paths; elements of lists have their list's path.
void collect(const Json& schema, const std::string& prefix, std::vector<std::string>& into) {
  if (schema.get("items").present()) collect(schema.get("items"), prefix, into);
  for (const auto& [name, property] : schema.get("properties").members()) {
    into.push_back(prefix + std::string(name));
    collect(property, into.back() + ".", into);
  }
}

bool contains(const std::vector<std::string>& paths, const std::string& path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

/// Nothing is looked into below it: it is known, and none of its members is.
bool is_below_a_leaf(const std::string& path, const std::vector<std::string>& known) {
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    const std::string parent = path.substr(0, dot);
    const bool leaf = std::none_of(known.begin(), known.end(), [&](const std::string& each) {
      return each.starts_with(parent + ".");
    });
    if (leaf && contains(known, parent)) return true;
  }
  return false;
}

TEST(UnknownFields, AreNeitherMoreNorFewerThanTheCrdsLackOnes) {
  for (const auto& [kind, file] : kCrds) {
    SCOPED_TRACE(file);
    const std::string path = std::string(MUSTER_CRDS) + "/" + file + ".yaml";
    const Json crd = kube::parse_yaml(read_text(path).value()).value().front();
    const Json version = crd.get("spec", "versions").at(0);
    ASSERT_EQ(version.get("name").string_or(""), "v1beta2");
    std::vector<std::string> in_crd;
    collect(version.get("schema", "openAPIV3Schema"), "", in_crd);
    ASSERT_GT(in_crd.size(), 4U);
    const std::vector<std::string> known = known_fields(kind, "v1beta2");
    for (const std::string& field : known) {
      // The API server's own, and what the CRD keeps without describing it.
      if (field.starts_with("metadata.") || field.find(".template.") != std::string::npos) continue;
      EXPECT_TRUE(contains(in_crd, field)) << field << " is known, but in no CRD";
    }
    for (const std::string& field : in_crd) {
      if (is_below_a_leaf(field, known) || field.find(".template.") != std::string::npos) continue;
      EXPECT_TRUE(contains(known, field)) << field << " is not known";
    }
  }
}

TEST(UnknownFields, OfTheOlderVersionAreOthers) {
  const auto old = known_fields(ManifestKind::kClusterQueue, "v1beta1");
  const auto now = known_fields(ManifestKind::kClusterQueue, "v1beta2");
  EXPECT_TRUE(contains(old, "spec.cohort") && !contains(old, "spec.cohortName"));
  EXPECT_TRUE(contains(now, "spec.cohortName") && !contains(now, "spec.cohort"));
  EXPECT_TRUE(known_fields(ManifestKind::kPod, "v1").empty());
}

}  // namespace
}  // namespace muster::cli

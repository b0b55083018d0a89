#pragma once
// What the administrator decided for the webhook.

#include "base/constraints.hpp"
#include "base/ids.hpp"
#include "kube/codec/quota_requests.hpp"

#include <set>
#include <string>
#include <vector>

namespace muster::webhook {

struct WebhookOptions {
  /// Configuration manageJobsWithoutQueueName: work without a queue waits for one, too.
  bool manage_jobs_without_queue_name = false;
  /// Configuration managedJobsNamespaceSelector: outside it nothing is queued, labelled or not.
  LabelSelector managed_namespaces{
      .match_labels = {},
      .match_expressions = {{.key = "kubernetes.io/metadata.name",
                             .op = SelectorRequirement::Operator::kNotIn,
                             .values = {"kube-system", "muster-system"}}}};
  /// podPriority: protect. Managed pods carry the class muster-managed.
  bool protect_priority = true;
  /// User names under which muster itself writes. Empty: unknown, so nothing is refused for who
  /// writes it.
  std::set<std::string> own_identities;
  /// Controllers that create the pods of started Jobs. Nobody else puts pods into queued ones.
  std::set<std::string> pod_controllers = {"system:serviceaccount:kube-system:job-controller",
                                           "system:kube-controller-manager"};
  /// Schedulers that ask our extender; a managed pod may name no other.
  std::set<std::string> scheduler_names = {"default-scheduler"};
  /// The second scheduler, which gets every pod that asks for a managed resource; empty: none.
  std::string second_scheduler;
  /// Which resources those are; empty: every pod.
  std::set<ResourceName> managed_resources;
  /// Configuration `resources`: what requests count as, and whether they count where a queue has no
  /// quota for them.
  kube::ResourceRules resource_rules;
  bool ignore_undeclared_resources = false;
};

}  // namespace muster::webhook

#include "cli/config.hpp"

#include "cli/fair_config.hpp"
#include "cli/text_file.hpp"
#include "kube/codec/object_parts.hpp"
#include "kube/codec/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace muster::cli {
namespace {

using kube::Json;
using kube::Reader;

constexpr std::string_view kConfigurationGroup = "config.kueue.x-k8s.io/";
constexpr std::string_view kServerApi = "muster.dev/v1";

constexpr std::array kConfigurationKeys = std::to_array<std::string_view>(
    {"apiVersion", "kind", "namespace", "manageJobsWithoutQueueName",
     "managedJobsNamespaceSelector", "leaderElection", "integrations", "resources", "fairSharing",
     "admissionFairSharing"});
constexpr std::array kLeaderElectionKeys =
    std::to_array<std::string_view>({"leaderElect", "resourceName", "resourceNamespace"});
constexpr std::array kResourcesKeys = std::to_array<std::string_view>(
    {"excludeResourcePrefixes", "transformations", "quotaCheckStrategy"});
constexpr std::array kServerKeys = std::to_array<std::string_view>(
    {"apiVersion", "kind", "kubeconfig", "extenderAddress", "webhookAddress", "metricsAddress",
     "apiAddress", "controller", "leaderElect", "certDir", "logLevel", "secondScheduler",
     "managedResources", "elasticWindow", "profile", "podPriority"});

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

template <std::size_t N>
void warn_unserved(const Reader& object, std::string_view prefix,
                   const std::array<std::string_view, N>& served,
                   std::vector<std::string>& warnings) {
  object.each_member([&](std::string_view key, const Reader& member) {
    if (member.missing() || is_one_of(key, served)) return;
    warnings.push_back(fmt::format("Configuration {}{} is not served and has no effect", prefix,
                                   key.substr(0, 64)));
  });
}

void read_integrations(const Reader& integrations, Config& config) {
  warn_unserved(integrations, "integrations.", std::to_array<std::string_view>({"frameworks"}),
                config.warnings);
  const Reader frameworks = integrations.get("frameworks");
  if (frameworks.missing()) return;
  config.queueing.manage_jobs = false;
  config.queueing.manage_pods = false;
  for (const std::string& framework : frameworks.strings()) {
    if (framework == "batch/job") {
      config.queueing.manage_jobs = true;
    } else if (framework == "pod") {
      config.queueing.manage_pods = true;
    } else {
      config.warnings.push_back(fmt::format(
          "Configuration integrations.frameworks: \"{}\" is not served and has no effect",
          framework.substr(0, 64)));
    }
  }
}

void read_leader_election(const Reader& election, Config& config) {
  warn_unserved(election, "leaderElection.", kLeaderElectionKeys, config.warnings);
  const Reader elect = election.get("leaderElect");
  if (!elect.missing()) config.queueing.leader_elect = elect.boolean(false);
  PeerLease& lease = config.queueing.peer_lease;
  if (const auto name = election.get("resourceName").optional_string()) lease.name = *name;
  if (const auto ns = election.get("resourceNamespace").optional_string()) lease.ns = *ns;
}

kube::ResourceTransformation read_transformation(const Reader& transformation) {
  kube::ResourceTransformation result;
  const Reader input = transformation.get("input");
  result.input = ResourceName(input.string());
  if (result.input.empty()) input.fail_unwanted("a resource name");
  result.retain = transformation.get("strategy").word({"Retain", "Replace"}) != "Replace";
  result.multiply_by = ResourceName(transformation.get("multiplyBy").string());
  result.outputs = transformation.get("outputs").quantities();
  return result;
}

void read_resources(const Reader& resources, Config& config) {
  warn_unserved(resources, "resources.", kResourcesKeys, config.warnings);
  kube::ResourceRules& rules = config.queueing.resource_rules;
  rules.exclude_prefixes = resources.get("excludeResourcePrefixes").strings();
  // An empty prefix would exclude everything; nobody can mean that.
  std::erase(rules.exclude_prefixes, std::string());
  const Reader transformations = resources.get("transformations");
  transformations.each([&](const Reader& each) {
    kube::ResourceTransformation read = read_transformation(each);
    const bool twice = std::any_of(rules.transformations.begin(), rules.transformations.end(),
                                   [&](const auto& known) { return known.input == read.input; });
    if (twice) each.fail(fmt::format("a second transformation of {}", read.input));
    rules.transformations.push_back(std::move(read));
  });
  const Reader strategy = resources.get("quotaCheckStrategy");
  config.queueing.engine.ignore_undeclared_resources =
      strategy.word({"BlockUndeclared", "IgnoreUndeclared"}) == "IgnoreUndeclared";
  if (config.queueing.engine.ignore_undeclared_resources && !rules.exclude_prefixes.empty()) {
    strategy.fail("IgnoreUndeclared and excludeResourcePrefixes exclude each other");
  }
}

void read_configuration(const Reader& root, bool v1beta1, Config& config) {
  warn_unserved(root, "", kConfigurationKeys, config.warnings);
  (void)root.get("namespace").string();
  config.queueing.manage_jobs_without_queue_name =
      root.get("manageJobsWithoutQueueName").boolean(false);
  const Reader selector = root.get("managedJobsNamespaceSelector");
  if (!selector.missing()) config.queueing.managed_namespaces = kube::read_label_selector(selector);
  const Reader election = root.get("leaderElection");
  read_leader_election(election, config);
  const Reader integrations = root.get("integrations");
  read_integrations(integrations, config);
  const Reader resources = root.get("resources");
  read_resources(resources, config);
  read_fair_sharing(root, v1beta1, config.queueing.engine);
}

/// `none` or `HOST:PORT`; what the host is worth shows when it is bound.
std::optional<std::string> read_address(const Reader& address) {
  const auto text = address.optional_string();
  if (!text || *text == "none") return text;
  const std::size_t colon = text->rfind(':');
  const std::string_view port =
      colon == std::string::npos ? std::string_view() : std::string_view(*text).substr(colon + 1);
  const bool digits =
      !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || std::stoi(std::string(port)) > 65'535) {
    address.fail_unwanted("HOST:PORT or none");
    return std::nullopt;
  }
  return text;
}

template <class T>
std::optional<T> read_word(const Reader& word, std::optional<T> (*parse)(std::string_view),
                           std::string_view wanted) {
  const auto text = word.optional_string();
  if (!text) return std::nullopt;
  const auto value = parse(*text);
  if (!value) word.fail_unwanted(wanted);
  return value;
}

std::optional<bool> read_bool(const Reader& flag) {
  if (flag.missing()) return std::nullopt;
  // `on` and `off` in quotes mean what they mean without.
  const std::string_view word = flag.json().string_or("");
  if (word == "on" || word == "true") return true;
  if (word == "off" || word == "false") return false;
  return flag.boolean(false);
}

void read_server(const Reader& root, ServerConfig& server) {
  root.each_member([&](std::string_view key, const Reader& member) {
    if (!is_one_of(key, kServerKeys)) {
      member.fail(fmt::format("unknown key (want one of {})",
                              fmt::join(kServerKeys.begin() + 2, kServerKeys.end(), ", ")));
    }
  });
  server.kubeconfig = root.get("kubeconfig").optional_string();
  const auto address = [&](std::string_view key) {
    const Reader member = root.get(key);
    return read_address(member);
  };
  server.extender_address = address("extenderAddress");
  server.webhook_address = address("webhookAddress");
  server.metrics_address = address("metricsAddress");
  server.api_address = address("apiAddress");
  const Reader controller = root.get("controller");
  server.controller = read_bool(controller);
  const Reader leader_elect = root.get("leaderElect");
  server.leader_elect = read_bool(leader_elect);
  server.cert_dir = root.get("certDir").optional_string();
  const Reader level = root.get("logLevel");
  server.log_level = read_word(level, parse_log_level, "one of debug, info, warning, error");
  server.second_scheduler = root.get("secondScheduler").optional_string();
  const Reader resources = root.get("managedResources");
  if (!resources.missing()) {
    server.managed_resources.emplace();
    for (const std::string& name : resources.strings()) {
      server.managed_resources->emplace_back(name);
    }
  }
  server.elastic_window = root.get("elasticWindow").optional_integer(1, Reader::kInt32Max);
  const Reader profile = root.get("profile");
  server.profile = read_word(profile, parse_profile, "one of muster, kueue");
  const Reader priority = root.get("podPriority");
  server.pod_priority = read_word(priority, parse_pod_priority, "one of protect, keep");
}

/// Reads one document into `config`; `seen` are the kinds read so far.
Result<void> read_document(const Json& document, std::vector<std::string>& seen, Config& config) {
  kube::FirstError errors;
  const Reader root(document, errors);
  root.require_object();
  const Reader api_version = root.get("apiVersion");
  const Reader kind = root.get("kind");
  const std::string api = api_version.string();
  const std::string name = kind.string();
  const bool configuration =
      name == "Configuration" && (api == std::string(kConfigurationGroup) + "v1beta1" ||
                                  api == std::string(kConfigurationGroup) + "v1beta2");
  const bool server = name == "ServerConfig" && api == kServerApi;
  if (!errors.any() && !configuration && !server) {
    root.fail(fmt::format(
        "got kind {} of {}, want a Configuration of config.kueue.x-k8s.io/v1beta1 or v1beta2, or a "
        "ServerConfig of muster.dev/v1",
        kube::describe(kind.json()), kube::describe(api_version.json())));
  }
  if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
    root.fail(fmt::format("a second {}", name));
  }
  seen.push_back(name);
  if (configuration) read_configuration(root, api.ends_with("/v1beta1"), config);
  if (server) read_server(root, config.server);
  return errors.or_value(true).map([](bool) {});
}

}  // namespace

engine::Options under_profile(Profile profile, engine::Options options) {
  if (profile == Profile::kKueue) {
    options.improvements = engine::Improvements::none();
    options.joint_flavors = false;
  }
  return options;
}

std::optional<log::Level> parse_log_level(std::string_view word) {
  for (const log::Level level :
       {log::Level::kDebug, log::Level::kInfo, log::Level::kWarning, log::Level::kError}) {
    if (word == log::to_string(level)) return level;
  }
  return std::nullopt;
}

std::optional<Profile> parse_profile(std::string_view word) {
  if (word == "muster") return Profile::kMuster;
  if (word == "kueue") return Profile::kKueue;
  return std::nullopt;
}

std::optional<PodPriority> parse_pod_priority(std::string_view word) {
  if (word == "protect") return PodPriority::kProtect;
  if (word == "keep") return PodPriority::kKeep;
  return std::nullopt;
}

Result<Config> parse_config(std::string_view text) {
  const auto documents = kube::parse_yaml(text);
  if (!documents) return fail(documents.error());
  Config config;
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < documents->size(); ++i) {
    const auto read = read_document((*documents)[i], seen, config);
    if (!read) return fail(read.error().with_context(fmt::format("document {}", i + 1)));
  }
  return config;
}

Result<Config> read_config(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return fail(text.error());
  auto config = parse_config(*text);
  if (!config) return fail(config.error().with_context(path));
  return config;
}

}  // namespace muster::cli

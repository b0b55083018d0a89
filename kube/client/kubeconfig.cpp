#include "kube/client/kubeconfig.hpp"

#include "certs/pem_files.hpp"
#include "kube/codec/base64.hpp"
#include "kube/codec/yaml.hpp"

#include <fmt/format.h>

#include <charconv>

namespace muster::kube {
namespace {

std::string resolve_path(const std::string& path, const std::string& directory) {
  if (path.starts_with('/') || directory.empty()) return path;
  return directory + "/" + path;
}

std::string text_of(const Json& object, std::string_view key) {
  return std::string(object.get(key).string_or(""));
}

// The `inner` object of the entry of `list` that is called `name`.
Result<Json> find_entry(const Json& config, std::string_view list, std::string_view inner,
                        const std::string& name) {
  const Json entries = config.get(list);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (text_of(entries.at(i), "name") == name) return entries.at(i).get(inner);
  }
  return fail(invalid_argument(fmt::format("{}: no entry is named \"{}\"", list, name)));
}

// `<key>-data` (base64) beats `<key>` (a file); absent when neither is set.
Result<std::optional<std::string>> data_or_file(const Json& object, const std::string& key,
                                                const std::string& directory) {
  const std::string data = text_of(object, key + "-data");
  if (!data.empty()) {
    Result<std::string> decoded = base64_decode(data);
    if (!decoded) return fail(decoded.error().with_context(key + "-data"));
    return std::optional<std::string>(std::move(*decoded));
  }
  const std::string path = text_of(object, key);
  if (path.empty()) return std::optional<std::string>();
  Result<std::string> content = certs::read_pem_file(resolve_path(path, directory));
  if (!content) return fail(content.error().with_context(key));
  return std::optional<std::string>(std::move(*content));
}

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0)
    return fail(invalid_argument(fmt::format("bad port \"{}\"", text)));
  return port;
}

Result<void> parse_server(std::string_view url, ClusterConfig& config) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme)) {
    return fail(invalid_argument(
        fmt::format("server: bad URL \"{}\" (want e.g. \"https://10.0.0.1:6443\")", url)));
  }
  url.remove_prefix(kScheme.size());
  const std::size_t slash = url.find('/');
  if (slash != std::string_view::npos) config.path_prefix = url.substr(slash);
  while (config.path_prefix.ends_with('/')) config.path_prefix.pop_back();
  std::string_view authority = url.substr(0, slash);
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos)
      return fail(invalid_argument("server: \"[\" without \"]\""));
    config.host = authority.substr(1, bracket - 1);
    port = authority.substr(bracket + 1);
  } else {
    const std::size_t colon = authority.find(':');
    config.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
  }
  if (config.host.empty()) return fail(invalid_argument("server: no host"));
  if (port.empty()) return {};
  if (!port.starts_with(':')) return fail(invalid_argument("server: text after \"]\""));
  const Result<std::uint16_t> number = parse_port(port.substr(1));
  if (!number) return fail(number.error().with_context("server"));
  config.port = *number;
  return {};
}

Result<void> read_cluster(const Json& cluster, const std::string& directory,
                          ClusterConfig& config) {
  const Result<void> server = parse_server(cluster.get("server").string_or(""), config);
  if (!server) return server;
  if (!text_of(cluster, "proxy-url").empty())
    return fail(invalid_argument("proxy-url: proxies are not supported"));
  config.skip_tls_verify = cluster.get("insecure-skip-tls-verify").bool_or(false);
  config.tls_server_name = text_of(cluster, "tls-server-name");
  Result<std::optional<std::string>> ca = data_or_file(cluster, "certificate-authority", directory);
  if (!ca) return fail(ca.error());
  config.ca_pem = std::move(*ca);
  return {};
}

// What a plugin with provideClusterInfo is told of the cluster (client.authentication.k8s.io/v1).
std::string cluster_info(const Json& cluster, const ClusterConfig& config) {
  return Json::object({{"server", cluster.get("server")},
                       {"tls-server-name", cluster.get("tls-server-name")},
                       {"insecure-skip-tls-verify", Json::boolean(config.skip_tls_verify)},
                       {"certificate-authority-data", cluster.get("certificate-authority-data")}})
      .dump();
}

Result<ExecPlugin> read_exec(const Json& exec, const std::string& directory,
                             const std::string& info) {
  ExecPlugin plugin;
  plugin.api_version = text_of(exec, "apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return fail(invalid_argument(fmt::format(
        "exec.apiVersion: got \"{}\", want client.authentication.k8s.io/v1", plugin.api_version)));
  }
  plugin.command = text_of(exec, "command");
  if (plugin.command.empty()) return fail(invalid_argument("exec.command: is missing"));
  // As client-go does: with a slash it is a path beside the file, without one it is looked up.
  if (plugin.command.find('/') != std::string::npos)
    plugin.command = resolve_path(plugin.command, directory);
  if (text_of(exec, "interactiveMode") == "Always")
    return fail(invalid_argument("exec.interactiveMode: Always cannot work without a terminal"));
  const Json arguments = exec.get("args");
  for (std::size_t i = 0; i < arguments.size(); ++i)
    plugin.arguments.emplace_back(arguments.at(i).string_or(""));
  const Json environment = exec.get("env");
  for (std::size_t i = 0; i < environment.size(); ++i) {
    plugin.environment.emplace_back(text_of(environment.at(i), "name"),
                                    text_of(environment.at(i), "value"));
  }
  plugin.install_hint = text_of(exec, "installHint");
  if (exec.get("provideClusterInfo").bool_or(false)) plugin.cluster_info = info;
  return plugin;
}

Result<void> read_user(const Json& user, const std::string& directory, const std::string& info,
                       ClusterConfig& config) {
  Result<std::optional<std::string>> certificate =
      data_or_file(user, "client-certificate", directory);
  if (!certificate) return fail(certificate.error());
  Result<std::optional<std::string>> key = data_or_file(user, "client-key", directory);
  if (!key) return fail(key.error());
  if (certificate->has_value() != key->has_value())
    return fail(invalid_argument("client-certificate and client-key must come together"));
  if (*certificate) {
    config.client_pair = certs::KeyPair{std::move(**certificate), std::move(**key)};
    const Result<void> matching = certs::check_pair(*config.client_pair);
    if (!matching) return fail(matching.error().with_context("client-certificate"));
  }
  if (user.get("auth-provider").present())
    return fail(invalid_argument("auth-provider: is gone from Kubernetes; use exec"));
  if (!text_of(user, "username").empty())
    return fail(invalid_argument("username: basic authentication is gone from Kubernetes"));
  if (const std::string token = text_of(user, "token"); !token.empty()) {
    config.token = StaticToken{token};
  } else if (const std::string path = text_of(user, "tokenFile"); !path.empty()) {
    config.token = TokenFile{resolve_path(path, directory)};
  } else if (const Json exec = user.get("exec"); !exec.missing()) {
    Result<ExecPlugin> plugin = read_exec(exec, directory, info);
    if (!plugin) return fail(plugin.error());
    config.token = std::move(*plugin);
  }
  return {};
}

}  // namespace

Result<ClusterConfig> parse_kubeconfig(const std::string& text, const std::string& directory,
                                       const std::string& context) {
  const Result<std::vector<Json>> documents = parse_yaml(text);
  if (!documents) return fail(documents.error());
  if (documents->size() != 1 || text_of(documents->front(), "kind") != "Config")
    return fail(invalid_argument("want one document of kind Config"));
  const Json& file = documents->front();
  const std::string name = context.empty() ? text_of(file, "current-context") : context;
  if (name.empty()) return fail(invalid_argument("current-context: is not set"));
  const Result<Json> chosen = find_entry(file, "contexts", "context", name);
  if (!chosen) return fail(chosen.error());
  ClusterConfig config;
  if (const std::string ns = text_of(*chosen, "namespace"); !ns.empty())
    config.default_namespace = ns;
  const std::string cluster_name = text_of(*chosen, "cluster");
  const Result<Json> cluster = find_entry(file, "clusters", "cluster", cluster_name);
  if (!cluster) return fail(cluster.error());
  const Result<void> cluster_read = read_cluster(*cluster, directory, config);
  if (!cluster_read)
    return fail(cluster_read.error().with_context("cluster \"" + cluster_name + "\""));
  const std::string user_name = text_of(*chosen, "user");
  if (user_name.empty()) return config;  // Anonymous, as client-go allows.
  const Result<Json> user = find_entry(file, "users", "user", user_name);
  if (!user) return fail(user.error());
  const Result<void> user_read =
      read_user(*user, directory, cluster_info(*cluster, config), config);
  if (!user_read) return fail(user_read.error().with_context("user \"" + user_name + "\""));
  return config;
}

Result<ClusterConfig> load_kubeconfig(const std::string& path, const std::string& context) {
  const Result<std::string> text = certs::read_pem_file(path);
  if (!text) return fail(text.error());
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash);
  Result<ClusterConfig> config = parse_kubeconfig(*text, directory, context);
  if (!config) return fail(config.error().with_context(path));
  return config;
}

Result<ClusterConfig> in_cluster_config(const InClusterSources& sources) {
  const char* host = sources.getenv("KUBERNETES_SERVICE_HOST");
  const char* port = sources.getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr || *host == '\0') {
    return fail(invalid_argument(
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"));
  }
  ClusterConfig config;
  config.host = host;
  const Result<std::uint16_t> number = parse_port(port);
  if (!number) return fail(number.error().with_context("KUBERNETES_SERVICE_PORT"));
  config.port = *number;
  const std::string& directory = sources.service_account_directory;
  Result<std::string> ca = certs::read_pem_file(directory + "/ca.crt");
  if (!ca) return fail(ca.error());
  config.ca_pem = std::move(*ca);
  config.token = TokenFile{directory + "/token"};
  if (const Result<std::string> ns = certs::read_pem_file(directory + "/namespace");
      ns && !ns->empty())
    config.default_namespace = *ns;
  return config;
}

}  // namespace muster::kube

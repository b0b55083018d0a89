#include "kube/client/exec_plugin.hpp"

#include "kube/codec/json.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <thread>
#include <unistd.h>

namespace muster::kube {
namespace {

constexpr std::size_t kMaxOutput = 1U << 20U;
constexpr auto kStep = std::chrono::milliseconds(20);  // How soon a stop or time-out is noticed.

Result<void> check_version(const Json& object, const std::string& api_version) {
  const std::string_view kind = object.get("kind").string_or("");
  const std::string_view version = object.get("apiVersion").string_or("");
  if (kind == "ExecCredential" && version == api_version) return {};
  return fail(invalid_argument(
      fmt::format("got {} {}, want {} ExecCredential", version, kind, api_version)));
}

std::string exec_info(const ExecPlugin& plugin) {
  std::vector<std::pair<std::string, Json>> spec = {{"interactive", Json::boolean(false)}};
  if (const Result<Json> cluster = Json::parse(plugin.cluster_info)) {
    spec.emplace_back("cluster", *cluster);
  }
  return Json::object({{"apiVersion", Json::string(plugin.api_version)},
                       {"kind", Json::string("ExecCredential")},
                       {"spec", Json::object(spec)}})
      .dump();
}

// Our own environment, the plugin's entries, and the request; later entries win over earlier ones.
std::vector<std::string> make_environment(const ExecPlugin& plugin) {
  std::vector<std::string> extra;
  for (const auto& [name, value] : plugin.environment) extra.push_back(name + "=" + value);
  extra.push_back("KUBERNETES_EXEC_INFO=" + exec_info(plugin));
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& other : extra) replaced = replaced || other.starts_with(name);
    if (!replaced) all.emplace_back(text);
  }
  all.insert(all.end(), extra.begin(), extra.end());
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// A child in a process group of its own, killed and reaped at the latest on destruction.
class Child {
 public:
  static Result<std::unique_ptr<Child>> spawn(const ExecPlugin& plugin) {
    std::array<int, 2> pipe_ends{-1, -1};
    if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
      return fail(ErrorCode::kUnavailable, std::string("pipe: ") + std::strerror(errno));
    std::vector<std::string> arguments = {plugin.command};
    arguments.insert(arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
    std::vector<std::string> environment = make_environment(plugin);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    pid_t pid = -1;
    const int error = ::posix_spawnp(&pid, plugin.command.c_str(), &actions, &attributes,
                                     pointers(arguments).data(), pointers(environment).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(pipe_ends[1]);
    if (error != 0) {
      ::close(pipe_ends[0]);
      return fail(ErrorCode::kUnavailable, std::string("cannot run: ") + std::strerror(error));
    }
    return std::unique_ptr<Child>(new Child(pid, pipe_ends[0]));
  }
  ~Child() {
    ::close(output_);
    if (reaped_) return;
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Reads for at most one step. True at the end of the output.
  Result<bool> read_step(std::string& text) const {
    pollfd waiting{.fd = output_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(kStep.count())) <= 0) return false;
    std::array<char, 4096> chunk;
    const ssize_t count = ::read(output_, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) return false;
    if (count < 0) return fail(ErrorCode::kUnavailable, std::strerror(errno));
    text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() > kMaxOutput) return fail(ErrorCode::kTooLarge, "prints more than 1 MiB");
    return count == 0;
  }

  // The wait status once it has ended.
  std::optional<int> ended() {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    reaped_ = true;
    return status;
  }

 private:
  Child(pid_t pid, int output) : pid_(pid), output_(output) {}
  pid_t pid_;
  int output_;
  bool reaped_ = false;
};

Result<std::string> run(const ExecPlugin& plugin, Duration timeout, const std::stop_token& stop) {
  Result<std::unique_ptr<Child>> child = Child::spawn(plugin);
  if (!child) return fail(child.error());
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::string output;
  bool output_over = false;
  for (;;) {
    if (stop.stop_requested()) return fail(ErrorCode::kUnavailable, "stopped");
    if (std::chrono::steady_clock::now() >= end)
      return fail(ErrorCode::kDeadline, "did not end in time");
    if (!output_over) {
      const Result<bool> over = (*child)->read_step(output);
      if (!over) return fail(over.error());
      output_over = *over;
      continue;
    }
    const std::optional<int> status = (*child)->ended();
    if (!status) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return output;
    return fail(ErrorCode::kUnavailable,
                WIFEXITED(*status) ? fmt::format("exit status {}", WEXITSTATUS(*status))
                                   : fmt::format("killed by signal {}", WTERMSIG(*status)));
  }
}

}  // namespace

Result<Credential> parse_exec_credential(std::string_view text, const std::string& api_version) {
  const Result<Json> object = Json::parse(text);
  if (!object) return fail(object.error());
  const Result<void> version = check_version(*object, api_version);
  if (!version) return fail(version.error());
  const Json status = object->get("status");
  Credential credential{.token = std::string(status.get("token").string_or(""))};
  const std::string_view certificate = status.get("clientCertificateData").string_or("");
  const std::string_view key = status.get("clientKeyData").string_or("");
  if (certificate.empty() != key.empty()) {
    return fail(
        invalid_argument("status: clientCertificateData and clientKeyData must come together"));
  }
  if (!certificate.empty()) {
    credential.client_pair = certs::KeyPair{std::string(certificate), std::string(key)};
    const Result<void> matching = certs::check_pair(*credential.client_pair);
    if (!matching) return fail(matching.error().with_context("status.clientCertificateData"));
  }
  if (credential.token.empty() && !credential.client_pair)
    return fail(invalid_argument("status: neither token nor clientCertificateData"));
  const std::string_view expires = status.get("expirationTimestamp").string_or("");
  if (!expires.empty()) {
    const Result<Instant> at = parse_rfc3339(expires);
    if (!at) return fail(at.error().with_context("status.expirationTimestamp"));
    credential.expires = *at;
  }
  return credential;
}

Result<Credential> run_exec_plugin(const ExecPlugin& plugin, Duration timeout,
                                   const std::stop_token& stop) {
  const std::string where = "credential plugin " + plugin.command;
  const Result<std::string> output = run(plugin, timeout, stop);
  if (!output) {
    Error error = output.error().with_context(where);
    if (!plugin.install_hint.empty()) error.message += " (" + plugin.install_hint + ")";
    return fail(std::move(error));
  }
  Result<Credential> credential = parse_exec_credential(*output, plugin.api_version);
  if (!credential) return fail(credential.error().with_context(where));
  return credential;
}

}  // namespace muster::kube

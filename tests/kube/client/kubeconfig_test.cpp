#include "kube/client/kubeconfig.hpp"

#include "certs/pem_files.hpp"
#include "kube/client/encoding.hpp"
#include "kube/client/exec_plugin.hpp"
#include "kube/codec/base64.hpp"
#include "tests/server/tls_fixture.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace muster::kube {
namespace {

std::string config_with(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
         "contexts:\n- name: main\n  context: {cluster: c, user: u, namespace: team-a}\n"
         "- name: other\n  context: {cluster: missing, user: u}\n"
         "- name: anonymous\n  context: {cluster: c}\n"
         "clusters:\n- name: c\n  cluster: " +
         cluster + "\nusers:\n- name: u\n  user: " + user + "\n";
}

class KubeconfigTest : public ::testing::Test {
 protected:
  KubeconfigTest() {
    std::string name = ::testing::TempDir() + "muster-kubeconfig-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    write("ca.crt", testing::test_pki().ca.certificate_pem);
    write("client.crt", testing::test_pki().client.certificate_pem);
    write("client.key", testing::test_pki().client.key_pem);
  }
  ~KubeconfigTest() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
  }
  std::string directory_;
};

TEST_F(KubeconfigTest, FilesAreFoundBesideTheKubeconfig) {
  write("config", config_with("{server: \"https://10.0.0.1:6443\", certificate-authority: ca.crt}",
                              "{client-certificate: client.crt, client-key: client.key}"));
  const Result<ClusterConfig> config = load_kubeconfig(directory_ + "/config");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->host, "10.0.0.1");
  EXPECT_EQ(config->port, 6443);
  EXPECT_EQ(config->ca_pem, testing::test_pki().ca.certificate_pem);
  EXPECT_EQ(config->client_pair, testing::test_pki().client);
  EXPECT_EQ(config->default_namespace, "team-a");
  EXPECT_EQ(config->token, TokenSource(NoToken{}));
}

TEST_F(KubeconfigTest, DataBeatsFilesAndTokenBeatsTokenFile) {
  const certs::KeyPair& pair = testing::test_pki().server;
  const Result<ClusterConfig> config = parse_kubeconfig(
      config_with("{server: \"https://api.example:443/k8s/clusters/c1/\", certificate-authority: "
                  "ca.crt, certificate-authority-data: " +
                      base64_encode(pair.certificate_pem) +
                      ", tls-server-name: kubernetes, insecure-skip-tls-verify: true}",
                  "{client-certificate: client.crt, client-certificate-data: " +
                      base64_encode(pair.certificate_pem) + ", client-key-data: " +
                      base64_encode(pair.key_pem) + ", token: abc, tokenFile: token}"),
      directory_, "");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->host, "api.example");
  EXPECT_EQ(config->path_prefix, "/k8s/clusters/c1");
  EXPECT_EQ(config->ca_pem, pair.certificate_pem);
  EXPECT_EQ(config->client_pair, pair);
  EXPECT_EQ(config->token, TokenSource(StaticToken{"abc"}));
  EXPECT_EQ(config->tls_server_name, "kubernetes");
  EXPECT_TRUE(config->skip_tls_verify);
}

TEST_F(KubeconfigTest, ServersAreTakenApart) {
  struct Case {
    const char* url;
    const char* host;
    std::uint16_t port;
  };
  for (const Case& c : {Case{"https://api", "api", 443}, Case{"https://api:1", "api", 1},
                        Case{"https://[::1]:6443", "::1", 6443}, Case{"https://[::1]", "::1", 443},
                        Case{"https://api/", "api", 443}}) {
    const Result<ClusterConfig> config = parse_kubeconfig(
        config_with("{server: \"" + std::string(c.url) + "\"}", "{}"), "", "anonymous");
    ASSERT_TRUE(config) << c.url << config.error().message;
    EXPECT_EQ(config->host, c.host) << c.url;
    EXPECT_EQ(config->port, c.port) << c.url;
    EXPECT_EQ(config->path_prefix, "") << c.url;
  }
}

TEST_F(KubeconfigTest, TokenFilesAndPluginsAreKeptForLater) {
  const std::string cluster = "{server: \"https://api\"}";
  const Result<ClusterConfig> file =
      parse_kubeconfig(config_with(cluster, "{tokenFile: token}"), "/etc/kube", "");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->token, TokenSource(TokenFile{"/etc/kube/token"}));
  const Result<ClusterConfig> exec = parse_kubeconfig(
      config_with(
          cluster,
          "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./get-token, args: "
          "[a, \"1\"], env: [{name: NAME, value: v}], installHint: install it, "
          "interactiveMode: IfAvailable, provideClusterInfo: true}}"),
      "/etc/kube", "");
  ASSERT_TRUE(exec) << exec.error().message;
  const auto& plugin = std::get<ExecPlugin>(exec->token);
  EXPECT_EQ(plugin.command, "/etc/kube/./get-token");
  EXPECT_EQ(plugin.arguments, (std::vector<std::string>{"a", "1"}));
  EXPECT_EQ(plugin.environment.front(), std::pair(std::string("NAME"), std::string("v")));
  EXPECT_NE(plugin.cluster_info.find("\"server\":\"https://api\""), std::string::npos);
}

TEST_F(KubeconfigTest, WhatCannotWorkIsAnErrorThatNamesTheField) {
  const std::string good = "{server: \"https://api\"}";
  struct Case {
    const char* sentence;
    std::string text;
    std::string context;
    const char* want;
  };
  const std::string v1 = "client.authentication.k8s.io/v1";
  for (const Case& c : {
           Case{"no YAML", "a: [", "", ""},
           Case{"another kind", "kind: Pod", "", "kind Config"},
           Case{"no context", "kind: Config", "", "current-context: is not set"},
           Case{"an unknown context", config_with(good, "{}"), "x", "no entry is named \"x\""},
           Case{"an unknown cluster", config_with(good, "{}"), "other", "named \"missing\""},
           Case{"plain http", config_with("{server: \"http://api\"}", "{}"), "", "bad URL"},
           Case{"no server", config_with("{}", "{}"), "", "cluster \"c\": server"},
           Case{"a bad port", config_with("{server: \"https://api:70000\"}", "{}"), "", "bad port"},
           Case{"a proxy", config_with("{server: \"https://api\", proxy-url: x}", "{}"), "",
                "proxy-url"},
           Case{"a CA file that is not there",
                config_with("{server: \"https://api\", certificate-authority: no.crt}", "{}"), "",
                "certificate-authority: "},
           Case{
               "data that is no base64",
               config_with("{server: \"https://api\", certificate-authority-data: \"%%%%\"}", "{}"),
               "", "certificate-authority-data: "},
           Case{"a certificate without a key",
                config_with(good, "{client-certificate: client.crt}"), "", "must come together"},
           Case{"a key of another certificate",
                config_with(good, "{client-certificate: ca.crt, client-key: client.key}"), "",
                "user \"u\": client-certificate: the private key does not belong"},
           Case{"an auth provider", config_with(good, "{auth-provider: {name: gcp}}"), "",
                "auth-provider"},
           Case{"a plugin of an old version",
                config_with(good, "{exec: {apiVersion: " + v1 + "alpha1, command: x}}"), "",
                "exec.apiVersion"},
           Case{"a plugin without a command", config_with(good, "{exec: {apiVersion: " + v1 + "}}"),
                "", "exec.command"},
           Case{"a plugin that wants a terminal",
                config_with(
                    good, "{exec: {apiVersion: " + v1 + ", command: x, interactiveMode: Always}}"),
                "", "interactiveMode"},
       }) {
    const Result<ClusterConfig> config = parse_kubeconfig(c.text, directory_, c.context);
    ASSERT_FALSE(config) << c.sentence;
    EXPECT_NE(config.error().message.find(c.want), std::string::npos)
        << c.sentence << ": " << config.error().message;
  }
  EXPECT_EQ(load_kubeconfig(directory_ + "/none").error().code, ErrorCode::kNotFound);
}

TEST_F(KubeconfigTest, InsideAPodTheServiceAccountSaysWhoWeAre) {
  std::map<std::string, std::string> environment;
  InClusterSources sources;
  sources.getenv = [&environment](const char* name) -> const char* {
    const auto it = environment.find(name);
    return it == environment.end() ? nullptr : it->second.c_str();
  };
  sources.service_account_directory = directory_;
  EXPECT_FALSE(in_cluster_config(sources));
  environment = {{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  write("namespace", "muster-system");
  const Result<ClusterConfig> config = in_cluster_config(sources);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->host, "fd00::1");
  EXPECT_EQ(config->default_namespace, "muster-system");
  EXPECT_EQ(config->token, TokenSource(TokenFile{directory_ + "/token"}));
  EXPECT_EQ(config->ca_pem, testing::test_pki().ca.certificate_pem);
  std::filesystem::remove(directory_ + "/ca.crt");
  EXPECT_FALSE(in_cluster_config(sources));
}

constexpr const char* kV1 = "client.authentication.k8s.io/v1";

ExecPlugin shell(const std::string& script) {
  ExecPlugin plugin;
  plugin.api_version = kV1;
  plugin.command = "sh";
  plugin.arguments = {"-c", script};
  return plugin;
}

TEST(ExecPlugin, ItsOutputIsTheCredential) {
  ExecPlugin plugin = shell(
      "printf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
      "\"status\":{\"token\":\"%s\",\"expirationTimestamp\":\"2030-01-01T00:00:00Z\"}}' "
      "\"$SECRET\"");
  plugin.environment = {{"SECRET", "s3cret"}};
  const Result<Credential> credential =
      run_exec_plugin(plugin, std::chrono::seconds(5), std::stop_token());
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->token, "s3cret");
  EXPECT_EQ(credential->expires, parse_rfc3339("2030-01-01T00:00:00Z").value());
}

TEST(ExecPlugin, ItIsToldWhatIsWanted) {
  ExecPlugin plugin = shell(
      "echo \"$KUBERNETES_EXEC_INFO\" | grep -q '\"interactive\":false' || exit 3; "
      "echo \"$KUBERNETES_EXEC_INFO\" | grep -q '\"server\":\"https://api\"' || exit 4; "
      "test -z \"$(cat)\" || exit 5; exit 6");
  plugin.cluster_info = R"({"server":"https://api"})";
  const Result<Credential> credential =
      run_exec_plugin(plugin, std::chrono::seconds(5), std::stop_token());
  ASSERT_FALSE(credential);
  EXPECT_NE(credential.error().message.find("exit status 6"), std::string::npos)
      << credential.error().message;
}

TEST(ExecPlugin, FailuresAreErrorsAndNothingIsLeftRunning) {
  ExecPlugin missing = shell("");
  missing.command = "muster-no-such-program";
  missing.install_hint = "install it";
  const Result<Credential> absent =
      run_exec_plugin(missing, std::chrono::seconds(5), std::stop_token());
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("(install it)"), std::string::npos)
      << absent.error().message;

  const auto start = std::chrono::steady_clock::now();
  const Result<Credential> slow = run_exec_plugin(shell("sleep 30 & sleep 30"),
                                                  std::chrono::milliseconds(50), std::stop_token());
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, ErrorCode::kDeadline);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(run_exec_plugin(shell("sleep 30"), std::chrono::seconds(30), stop.get_token()));
  EXPECT_FALSE(run_exec_plugin(shell("kill -9 $$"), std::chrono::seconds(5), std::stop_token()));
  EXPECT_FALSE(run_exec_plugin(shell("yes"), std::chrono::seconds(5), std::stop_token()));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(ExecPlugin, OddOutputIsRefused) {
  const auto object = [](const std::string& status) {
    return std::string(R"({"apiVersion":")") + kV1 + R"(","kind":"ExecCredential","status":)" +
           status + "}";
  };
  EXPECT_TRUE(parse_exec_credential(object(R"({"token":"t"})"), kV1));
  for (const std::string& text :
       {std::string(), std::string("token"), std::string("{}"), object("null"), object("{}"),
        object(R"({"token":7})"), object(R"({"token":"t","expirationTimestamp":"soon"})"),
        object(R"({"clientCertificateData":"x"})"),
        object(R"({"clientCertificateData":"x","clientKeyData":"y"})")})
    EXPECT_FALSE(parse_exec_credential(text, kV1)) << text;
  EXPECT_FALSE(
      parse_exec_credential(object(R"({"token":"t"})"), "client.authentication.k8s.io/v1beta1"));
}

TEST(Encoding, PercentKeepsUnreservedCharactersOnly) {
  EXPECT_EQ(percent_encode("a b/c=é~"), "a%20b%2Fc%3D%C3%A9~");
}

}  // namespace
}  // namespace muster::kube

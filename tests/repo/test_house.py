"""Each rule of the house on a small made-up tree: it can fail, and it does not fail for nothing."""

import importlib.util
import pathlib
import subprocess

import pytest

_FILE = pathlib.Path(__file__).with_name("house.py")
_SPEC = importlib.util.spec_from_file_location("house", _FILE)
house = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(house)


def breaches(tmp_path, rule, files):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [str(b) for b in house.RULES[rule](house.Tree(tmp_path))]


@pytest.mark.parametrize("why, name, include", [
    ("placement never sees quotas", "topology/place.cpp", '"quota/tree.hpp"'),
    ("quotas never see placement", "quota/tree.cpp", '"topology/place.hpp"'),
    ("the base knows nobody", "base/ids.hpp", '"engine/engine.hpp"'),
    ("the engine speaks no JSON", "engine/state.cpp", '"kube/codec/pod.hpp"'),
    ("the codec does not decide", "kube/codec/pod.cpp", '"engine/engine.hpp"'),
    ("the controller opens no socket", "controller/effects.cpp", '"kube/client/client.hpp"'),
    ("the extender does not know the webhook", "extender/filter.cpp", '"webhook/pin.hpp"'),
    ("commands run offline", "cli/decide.cpp", '"kube/client/client.hpp"'),
    ("only the program composes the server", "cli/decide.cpp", '"server/server.hpp"'),
    ("a path that hides its folder", "engine/state.cpp", '"state.hpp"'),
    ("the composition root is nobody's library", "webhook/pin.cpp", '"server/server.hpp"'),
])
def test_an_include_against_the_arrows_is_a_breach(tmp_path, why, name, include):
    assert len(breaches(tmp_path, "layering", {name: f"#include {include}\n"})) == 1, why


@pytest.mark.parametrize("name, include", [
    ("engine/state.cpp", '"quota/tree.hpp"'), ("engine/state.cpp", '"engine/state.hpp"'),
    ("quota/tree.hpp", '"base/amount.hpp"'), ("server/server.cpp", '"kube/client/client.hpp"'),
    ("cli/main.cpp", '"server/server.hpp"'), ("tests/quota/tree_test.cpp", '"topology/place.hpp"'),
    ("engine/state.cpp", "<vector>"),
])
def test_an_include_along_the_arrows_is_none(tmp_path, name, include):
    assert breaches(tmp_path, "layering", {name: f"#include {include}\n"}) == []


def test_a_folder_that_nobody_placed_is_a_breach(tmp_path):
    assert breaches(tmp_path, "layering", {"helpers/x.cpp": "int x;\n"}) == [
        "helpers/x.cpp:1: folder helpers/ has no place in the dependency direction"]


@pytest.mark.parametrize("name, header, expected", [
    ("kube/codec/json.cpp", "rapidjson/document.h", 0), ("kube/codec/json.hpp", "rapidjson/document.h", 1),
    ("engine/state.cpp", "rapidjson/document.h", 1), ("cli/decide.cpp", "yaml-cpp/yaml.h", 1),
    ("server/http.cpp", "boost/beast/core.hpp", 0), ("controller/effects.cpp", "boost/asio.hpp", 1),
    ("kube/client/client.cpp", "boost/asio/ssl.hpp", 0), ("webhook/pin.cpp", "openssl/evp.h", 1),
    ("extender/filter.cpp", "prometheus/counter.h", 1), ("server/serve.cpp", "CLI/CLI.hpp", 1),
    ("base/log.cpp", "fmt/format.h", 0), ("base/log.cpp", "spdlog/spdlog.h", 1),
])
def test_a_library_outside_its_folder_is_a_breach(tmp_path, name, header, expected):
    assert len(breaches(tmp_path, "third_party", {name: f"#include <{header}>\n"})) == expected


@pytest.mark.parametrize("name, line, expected", [
    ("engine/step.cpp", "auto t = std::chrono::system_clock::now();", 1),
    ("quota/tree.cpp", "int r = std::rand();", 1),
    ("extender/filter.cpp", "std::this_thread::sleep_for(1s);", 1),
    ("controller/x.cpp", "#include <thread>", 1), ("topology/x.cpp", "#include <random>", 1),
    ("engine/x.cpp", "#include <sys/socket.h>", 1), ("engine/x.cpp", "#include <chrono>", 0),
    ("extender/ledger.hpp", "#include <mutex>", 0), ("extender/room.hpp", "#include <mutex>", 1),
    ("extender/ledger.hpp", "#include <thread>", 1),
    ("engine/x.cpp", "int y;  // never system_clock::now() here", 0),
    ("server/loop.cpp", "auto t = std::chrono::steady_clock::now();", 0),
])
def test_a_clock_a_thread_or_a_die_where_decisions_are_made_is_a_breach(tmp_path, name, line, expected):
    assert len(breaches(tmp_path, "purity", {name: line + "\n"})) == expected


@pytest.mark.parametrize("lines, expected", [(800, 0), (801, 1)])
def test_a_file_of_more_than_800_lines_is_a_breach(tmp_path, lines, expected):
    assert len(breaches(tmp_path, "length", {"engine/long.cpp": "int x;\n" * lines})) == expected


@pytest.mark.parametrize("text, expected", [
    ("see /" + "work/notes", 1), ("cp /" + "root/.cache/x y", 1), ("open('/" + "tmp/data.json')", 1),
    ("/" + "home/somebody/bin", 1), ("GOPROXY=" + "x", 1),
    ("cohorts/root/children", 0), ("${HOME}/" + "work/x", 0), ("https://h/v1/" + "tmp/x", 0), ("the /" + "tmp folder", 0),
])
def test_a_path_of_one_machine_is_a_breach(tmp_path, text, expected):
    assert len(breaches(tmp_path, "paths", {"docs/x.md": text + "\n"})) == expected


@pytest.mark.parametrize("text, expected", [
    ("[a](other.md)", 0), ("[a](other.md#some-heading)", 0), ("[a](#here-it-is)", 0),
    ("[a](https://example.org/x)", 0), ("`[a](nowhere.md)`", 0), ("```\n[a](nowhere.md)\n```", 0),
    ("[a](nowhere.md)", 1), ("[a](other.md#no-heading)", 1), ("[a](../engine)", 1),
])
def test_a_link_that_leads_nowhere_is_a_breach(tmp_path, text, expected):
    found = breaches(tmp_path, "links", {
        "docs/x.md": f"# Here it is\n{text}\n", "docs/other.md": "## Some heading\n"})
    assert len(found) == expected


def test_the_program_tells_breaches_by_its_exit_code(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "x.cpp").write_text('#include "engine/engine.hpp"\n')
    done = subprocess.run([_FILE, "layering", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == "base/x.cpp:1: base/ must not know engine/ (engine/engine.hpp)\n"
    assert subprocess.run([_FILE, "no-such-rule"], capture_output=True).returncode == 2

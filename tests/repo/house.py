#!/usr/bin/env python3
"""The rules of the house, read off the files: dependency direction, purity, length, paths, links.

    house.py RULE [ROOT]      prints every breach, exit 1 if there was one; without RULE: all rules

docs/architecture.md says why each rule is there.
"""

import dataclasses
import pathlib
import re
import subprocess
import sys
import typing

# What a folder may include of ours, itself and base/ apart. Every folder of sources is listed: one
# that is not is a breach of its own.
MAY_INCLUDE = {
    "base": set(),
    "quota": set(),
    "topology": set(),
    "engine": {"quota", "topology"},
    "kube/codec": set(),
    "certs": set(),
    "kube/client": {"kube/codec", "certs"},
    "controller": {"engine", "kube/codec"},
    "extender": {"engine", "kube/codec"},
    "webhook": {"engine", "kube/codec"},
    "server": {"engine", "kube/codec", "kube/client", "certs", "controller", "extender", "webhook"},
    "cli": {"engine", "controller", "kube/codec"},
    "sim": {"engine", "controller", "kube/codec"},
}
# The program itself is where `serve` is composed; `muster certs` is about nothing but certificates.
ALSO_MAY_INCLUDE = {"cli/main.cpp": {"server"}, "cli/certs_command.cpp": {"certs"}}

# Third-party headers by their first path elements: the folders (or, with a suffix, the files) that
# may include them.
CONFINED = {
    "rapidjson/": ({"kube/codec"}, ".cpp"),
    "yaml-cpp/": ({"kube/codec"}, ".cpp"),
    "boost/asio": ({"kube/client", "certs", "server", "cmake"}, ""),
    "boost/beast": ({"kube/client", "certs", "server", "cmake"}, ""),
    "openssl/": ({"kube/client", "certs", "server"}, ""),
    "prometheus/": ({"server"}, ""),
    "CLI/": ({"cli"}, ""),
}

PURE = ("base", "quota", "topology", "engine", "kube/codec", "controller", "extender", "webhook")
IMPURE_HEADERS = {
    "thread", "mutex", "shared_mutex", "condition_variable", "future", "random", "stop_token",
    "semaphore", "unistd.h", "sys/socket.h", "sys/time.h", "time.h", "pthread.h", "netdb.h"}
# The ledger is shared by the calls of the scheduler and the controller that waits for them.
MAY_LOCK = {"extender/ledger.hpp", "extender/ledger.cpp"}
IMPURE_WORDS = re.compile(
    r"system_clock::now|steady_clock::now|high_resolution_clock|std::rand\b|\bsrand\(|random_device"
    r"|sleep_for|sleep_until|\bgettimeofday\(|\bclock_gettime\(|std::time\(|std::getenv\(")

MAX_LINES = 800
MACHINE_PATH = re.compile(r"(?<![\w.}\-])/(?:work|root|home/\w+|tmp)(?:/[\w.\-]+)+|GOPROXY=|--index-url")
SOURCES = (".hpp", ".cpp", ".py", ".sh", ".go", ".cmake")
GENERATED = ("go.sum",)
# A breach needs an example of itself in the tests of these rules.
OWN_FILES = ("tests/repo/house.py", "tests/repo/test_house.py")


@dataclasses.dataclass(frozen=True)
class Breach:
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class Tree:
    """The files of the repository: tracked, and new ones that no .gitignore hides."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                                capture_output=True, text=True)
        if listed.returncode == 0:
            names = listed.stdout.splitlines()
        else:
            names = [str(p.relative_to(root)) for p in root.rglob("*")]
        self.files = sorted(n for n in names if (root / n).is_file() and not n.startswith("build/"))

    def lines(self, name: str) -> typing.Iterator[tuple[int, str]]:
        text = (self.root / name).read_bytes().decode(errors="replace")
        return enumerate(text.splitlines(), 1)

    def cpp(self) -> list[str]:
        return [f for f in self.files if f.endswith((".hpp", ".cpp"))]


def folder_of(name: str) -> str:
    """The unit of layering that a file belongs to: kube/codec and kube/client are two."""
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] == "kube" else parts[0]


def _includes(tree: Tree, name: str):
    for number, line in tree.lines(name):
        if match := re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line):
            yield number, match[1] == '"', match[2]


def layering(tree: Tree) -> list[Breach]:
    """Our own headers: only along the arrows."""
    out = []
    for name in tree.cpp():
        here = folder_of(name)
        if here in ("tests", "cmake", "fuzz", "bench"):
            continue
        if here not in MAY_INCLUDE:
            out.append(Breach(name, 1, f"folder {here}/ has no place in the dependency direction"))
            continue
        allowed = MAY_INCLUDE[here] | {here, "base"} | ALSO_MAY_INCLUDE.get(name, set())
        for number, ours, header in _includes(tree, name):
            if not ours:
                continue
            there = folder_of(header)
            if "/" not in header or there not in MAY_INCLUDE:
                out.append(Breach(name, number, f'"{header}" does not start with a folder of the repository'))
            elif there not in allowed:
                out.append(Breach(name, number, f"{here}/ must not know {there}/ ({header})"))
    return out


def third_party(tree: Tree) -> list[Breach]:
    """Libraries that only certain folders may see, and base/ which sees two."""
    out = []
    for name in tree.cpp():
        here = folder_of(name)
        if here == "tests":
            continue
        for number, ours, header in _includes(tree, name):
            if ours:
                continue
            for prefix, (folders, suffix) in CONFINED.items():
                if header.startswith(prefix) and not (here in folders and name.endswith(suffix)):
                    where = " and ".join(f"{f}/*{suffix}" for f in sorted(folders))
                    out.append(Breach(name, number, f"<{header}> belongs in {where} only"))
            if here == "base" and "/" in header and not header.startswith(("tl/", "fmt/")):
                out.append(Breach(name, number, f"base/ sees tl::expected and fmt only, not <{header}>"))
    return out


def purity(tree: Tree) -> list[Breach]:
    """No clock, thread, random number or socket where decisions are made."""
    out = []
    for name in tree.cpp():
        if folder_of(name) not in PURE:
            continue
        for number, ours, header in _includes(tree, name):
            if not ours and header in IMPURE_HEADERS and not (header == "mutex" and name in MAY_LOCK):
                out.append(Breach(name, number, f"<{header}> in a pure folder"))
        for number, line in tree.lines(name):
            if match := IMPURE_WORDS.search(line.split("//")[0]):
                out.append(Breach(name, number, f"{match[0]} in a pure folder"))
    return out


def length(tree: Tree) -> list[Breach]:
    """A file that nobody can hold in their head is two files."""
    out = []
    for name in tree.files:
        if name.endswith(SOURCES):
            count = sum(1 for _ in tree.lines(name))
            if count > MAX_LINES:
                out.append(Breach(name, count, f"{count} lines, {MAX_LINES} are allowed"))
    return out


def paths(tree: Tree) -> list[Breach]:
    """Nothing that is true on one machine only."""
    out = []
    for name in tree.files:
        if name in OWN_FILES or name.endswith(GENERATED):
            continue
        for number, line in tree.lines(name):
            if match := MACHINE_PATH.search(line):
                out.append(Breach(name, number, f"a path or setting of one machine: {match[0]}"))
    return out


def links(tree: Tree) -> list[Breach]:
    """Relative links and anchors in the documentation lead somewhere."""
    out = []
    for name in (f for f in tree.files if f.endswith(".md")):
        for number, line in _outside_code(tree, name):
            for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                file = (tree.root / name).parent / path if path else tree.root / name
                if not file.exists():
                    out.append(Breach(name, number, f"link to {target}: no such file"))
                elif anchor and file.suffix == ".md" and anchor not in _anchors(file):
                    out.append(Breach(name, number, f"link to {target}: no such heading"))
    return out


def _outside_code(tree: Tree, name: str):
    inside = False
    for number, line in tree.lines(name):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, re.sub(r"`[^`]*`", "", line)


def _anchors(file: pathlib.Path) -> set[str]:
    out = set()
    for line in file.read_text().splitlines():
        if match := re.match(r"#+\s+(.*?)\s*$", line):
            text = re.sub(r"[^\w\- ]", "", match[1].lower())
            out.add(text.replace(" ", "-"))
    return out


RULES = {"layering": layering, "third_party": third_party, "purity": purity, "length": length,
         "paths": paths, "links": links}


def main(arguments: list[str]) -> int:
    root = pathlib.Path(__file__).resolve().parents[2]
    wanted = list(RULES)
    if arguments:
        wanted = [arguments[0]]
        root = pathlib.Path(arguments[1]) if len(arguments) > 1 else root
    if unknown := [w for w in wanted if w not in RULES]:
        print(f"no such rule: {unknown[0]}; there are {', '.join(RULES)}", file=sys.stderr)
        return 2
    tree = Tree(root)
    if not tree.files:
        print(f"no files in {root}", file=sys.stderr)
        return 2
    breaches = [b for w in wanted for b in RULES[w](tree)]
    for breach in breaches:
        print(breach)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

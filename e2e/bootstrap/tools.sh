#!/usr/bin/env bash
# Builds the local control plane from Go modules, once per set of versions, and prints its folder.
#
#   tools.sh                  builds what is missing
#   tools.sh --print-folder   prints the folder, builds nothing
#
# In the environment: MUSTER_TOOLS_FOR_TESTS=1 adds what only tests need; MUSTER_KUBERNETES=1.34 is the
# oldest Kubernetes that muster serves, instead of the newest.
#
# The folder's name ends in a hash of the modules' go.mod and go.sum, so that new versions get a new
# folder and old ones stay usable. Each program appears by rename, complete or not at all.
set -euo pipefail
# shellcheck source=e2e/bootstrap/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

newest=$muster_root/e2e/controlplane
module=$newest
if [ -n "${MUSTER_KUBERNETES:-}" ]; then
  module=$newest/v$MUSTER_KUBERNETES
  [ -f "$module/go.mod" ] || { say "tools.sh: there is no Kubernetes $MUSTER_KUBERNETES here"; exit 2; }
fi
client=$muster_root/e2e/scheduler_client

hash_of() { cat "$@" | sha256sum | cut -c 1-12; }

# folder_of MODULE: where that module's programs are.
folder_of() {
  echo "$muster_cache/tools-$(version_of "$1")-$(hash_of "$1/go.mod" "$1/go.sum" "$newest/kwok/go.mod" "$newest/kwok/go.sum")"
}
version_of() { grep -oE 'k8s\.io/kubernetes v[0-9.]+' "$1/go.mod" | head -n 1 | cut -d ' ' -f 2; }

version=$(version_of "$module")
folder=$(folder_of "$module")
[ "${1:-}" = --print-folder ] && { echo "$folder"; exit 0; }

minor=${version#v1.}
minor=${minor%%.*}
stamp=k8s.io/component-base/version
stamp="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor"

# name, folder of its module, kind (build or test), package, linker flags
programs=(
  "kube-apiserver|$module|build|k8s.io/kubernetes/cmd/kube-apiserver|$stamp"
  "kube-controller-manager|$module|build|k8s.io/kubernetes/cmd/kube-controller-manager|$stamp"
  "kube-scheduler|$module|build|k8s.io/kubernetes/cmd/kube-scheduler|$stamp"
)
if [ "$module" = "$newest" ]; then
  programs+=(
    "kubectl|$module|build|k8s.io/kubernetes/cmd/kubectl|$stamp"
    "etcd|$module|build|go.etcd.io/etcd/server/v3|-s -w"
    "kwok|$module/kwok|build|sigs.k8s.io/kwok/cmd/kwok|"
  )
  # The scheduler's client carries the hash of its own source: it changes more often than the rest.
  [ "${MUSTER_TOOLS_FOR_TESTS:-}" = 1 ] && programs+=(
    "kubeadm|$module|build|k8s.io/kubernetes/cmd/kubeadm|$stamp"
    "scheduler-client-$(hash_of "$client"/go.mod "$client"/go.sum "$client"/extender_test.go).test|$client|test|.|-s -w"
  )
fi

build() { # module kind package flags output
  cd "$1"
  case $2 in
    build) go build -mod=readonly -ldflags "$4" -o "$5.part" "$3" ;;
    test) go test -mod=readonly -c -ldflags "$4" -o "$5.part" "$3" ;;
  esac
  mv "$5.part" "$5"
}

mkdir -p "$folder"
missing=()
for program in "${programs[@]}"; do
  [ -x "$folder/${program%%|*}" ] || missing+=("$program")
done
if [ "${#missing[@]}" -gt 0 ]; then
  say "Kubernetes $version: ${#missing[@]} of ${#programs[@]} programs to build (cold about 10 minutes on two cores)"
  number=0
  for program in "${missing[@]}"; do
    IFS='|' read -r name where kind what flags <<<"$program"
    number=$((number + 1))
    run_with_progress "[$number/${#missing[@]}] $name" build "$where" "$kind" "$what" "$flags" "$folder/$name"
  done
fi
if [ "$module" != "$newest" ]; then # what does not depend on the version comes from the newest
  for name in kubectl etcd kwok kubeadm; do
    ln -sf "$(folder_of "$newest")/$name" "$folder/$name"
  done
fi
echo "$folder"

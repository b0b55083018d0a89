#!/usr/bin/env bash
# Builds the local control plane from Go modules, once per set of versions, and prints its folder.
#
#   tools.sh                    builds what is missing; MUSTER_TOOLS_FOR_TESTS=1 adds what tests need
#   tools.sh --print-folder     prints the folder, builds nothing
#
# The folder's name ends in a hash of the modules' go.mod and go.sum, so that new versions get a new
# folder and old ones stay usable. Each program appears by rename, complete or not at all.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=e2e/bootstrap/lib.sh
. "$here/lib.sh"

module=$muster_root/e2e/controlplane
version=$(sed -n 's/^require k8s.io\/kubernetes \(v[0-9.]*\).*/\1/p; s/^\tk8s.io\/kubernetes \(v[0-9.]*\).*/\1/p' \
  "$module/go.mod" | head -n 1)
key=$(cat "$module/go.mod" "$module/go.sum" "$module/kwok/go.mod" "$module/kwok/go.sum" | sha256sum | cut -c 1-12)
folder=$muster_cache/tools-$version-$key
[ "${1:-}" = --print-folder ] && { echo "$folder"; exit 0; }

minor=${version#v1.}
minor=${minor%%.*}
package=k8s.io/component-base/version
stamp="-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor"

# name, folder of its module, kind (build or test), package, linker flags; the most needed first
programs=(
  "kubectl|$module|build|k8s.io/kubernetes/cmd/kubectl|$stamp"
  "etcd|$module|build|go.etcd.io/etcd/server/v3|-s -w"
  "kube-apiserver|$module|build|k8s.io/kubernetes/cmd/kube-apiserver|$stamp"
  "kube-controller-manager|$module|build|k8s.io/kubernetes/cmd/kube-controller-manager|$stamp"
  "kube-scheduler|$module|build|k8s.io/kubernetes/cmd/kube-scheduler|$stamp"
  "kwok|$module/kwok|build|sigs.k8s.io/kwok/cmd/kwok|"
)
# only the tests need these; the scheduler's client carries the hash of its own source
client=$muster_root/e2e/scheduler_client
client_key=$(cat "$client/go.mod" "$client/go.sum" "$client/extender_test.go" | sha256sum | cut -c 1-12)
[ "${MUSTER_TOOLS_FOR_TESTS:-}" = 1 ] && programs+=(
  "kubeadm|$module|build|k8s.io/kubernetes/cmd/kubeadm|$stamp"
  "scheduler-client-$client_key.test|$client|test|.|-s -w"
)

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
  say "Control plane $version: ${#missing[@]} of ${#programs[@]} programs to build (cold, about 10 minutes on two cores)"
  number=0
  for program in "${missing[@]}"; do
    IFS='|' read -r name where kind what flags <<<"$program"
    number=$((number + 1))
    run_with_progress "[$number/${#missing[@]}] $name" build "$where" "$kind" "$what" "$flags" "$folder/$name"
  done
fi
echo "$folder"

// Package scheduler_client drives a running muster with the HTTP client that kube-scheduler itself
// uses (NewHTTPExtender), over mutual TLS.
//
// The world is a JSON file named by MUSTER_WORLD, written by the test that starts this program:
//
//	{"urlPrefix": "...", "ca": "FILE", "cert": "FILE", "key": "FILE",
//	 "nodes": [Node...], "pods": [Pod...],
//	 "gangNodes": ["names of the nodes that a running gang fills"]}
package scheduler_client

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const gpu = v1.ResourceName("nvidia.com/gpu")

type world struct {
	URLPrefix string    `json:"urlPrefix"`
	CA        string    `json:"ca"`
	Cert      string    `json:"cert"`
	Key       string    `json:"key"`
	Nodes     []v1.Node `json:"nodes"`
	Pods      []v1.Pod  `json:"pods"`
	GangNodes []string  `json:"gangNodes"`
}

func load(t *testing.T) world {
	t.Helper()
	path := os.Getenv("MUSTER_WORLD")
	if path == "" {
		t.Skip("MUSTER_WORLD names no file: nothing to talk to")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var w world
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Nodes) == 0 || len(w.GangNodes) == 0 {
		t.Fatal("the world needs nodes, and a gang that runs on some of them")
	}
	return w
}

// client is configured as the shipped scheduler configuration configures kube-scheduler.
func client(t *testing.T, w world, withCertificate, nodeCacheCapable bool) fwk.Extender {
	t.Helper()
	tls := &schedulerapi.ExtenderTLSConfig{CAFile: w.CA}
	if withCertificate {
		tls.CertFile, tls.KeyFile = w.Cert, w.Key
	}
	extender, err := scheduler.NewHTTPExtender(&schedulerapi.Extender{
		URLPrefix: w.URLPrefix, FilterVerb: "filter", PrioritizeVerb: "prioritize", PreemptVerb: "preempt",
		Weight: 1, EnableHTTPS: true, TLSConfig: tls, NodeCacheCapable: nodeCacheCapable,
		HTTPTimeout: metav1.Duration{Duration: 2 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	return extender
}

func infos(w world) []fwk.NodeInfo {
	var all []fwk.NodeInfo
	for i := range w.Nodes {
		info := framework.NewNodeInfo()
		info.SetNode(&w.Nodes[i])
		for j := range w.Pods {
			if w.Pods[j].Spec.NodeName == w.Nodes[i].Name {
				info.AddPod(&w.Pods[j])
			}
		}
		all = append(all, info)
	}
	return all
}

func foreign(name, gpus string) *v1.Pod {
	quantity := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), gpu: resource.MustParse(gpus)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{
			Name: "c", Image: "x", Resources: v1.ResourceRequirements{Requests: quantity, Limits: quantity}}}},
	}
}

func names(nodes []fwk.NodeInfo) []string {
	var out []string
	for _, node := range nodes {
		out = append(out, node.Node().Name)
	}
	slices.Sort(out)
	return out
}

// lister is the part of the scheduler's snapshot that ProcessPreemption needs.
type lister struct{ byName map[string]fwk.NodeInfo }

func newLister(nodes []fwk.NodeInfo) lister {
	l := lister{map[string]fwk.NodeInfo{}}
	for _, node := range nodes {
		l.byName[node.Node().Name] = node
	}
	return l
}

func (l lister) List() ([]fwk.NodeInfo, error)                                 { return nil, nil }
func (l lister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error)             { return nil, nil }
func (l lister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) { return nil, nil }
func (l lister) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	return nil, nil
}
func (l lister) Get(name string) (fwk.NodeInfo, error) {
	if node, ok := l.byName[name]; ok {
		return node, nil
	}
	return nil, errors.New("no such node: " + name)
}

func TestFilterKeepsAForeignPodOffNodesThatAGangFills(t *testing.T) {
	w := load(t)
	all := infos(w)
	kept, failed, unresolvable, err := client(t, w, true, true).Filter(foreign("f1", "8"), all)
	if err != nil {
		t.Fatal(err)
	}
	if len(failed) != 0 {
		t.Errorf("refusals of the planner belong in FailedAndUnresolvableNodes, these are in FailedNodes: %v", failed)
	}
	if len(kept) == 0 || len(kept)+len(unresolvable) != len(all) {
		t.Errorf("%d kept and %d refused of %d nodes", len(kept), len(unresolvable), len(all))
	}
	for _, name := range names(kept) {
		if slices.Contains(w.GangNodes, name) {
			t.Errorf("node %s is full of a gang, yet was answered", name)
		}
	}
	texts := map[string]bool{}
	for _, text := range unresolvable {
		texts[text] = true
	}
	if len(texts) > 2 {
		t.Errorf("a refusal needs a constant text, or the scheduler retries for ever: %v", texts)
	}
}

func TestFilterAnswersTheSameTwice(t *testing.T) {
	w := load(t)
	extender := client(t, w, true, true)
	first, _, _, err := extender.Filter(foreign("f2", "1"), infos(w))
	if err != nil {
		t.Fatal(err)
	}
	second, _, _, err := extender.Filter(foreign("f2", "1"), infos(w))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names(first), names(second)) {
		t.Errorf("first %v, then %v", names(first), names(second))
	}
}

func TestFilterServesASchedulerThatSendsWholeNodes(t *testing.T) {
	w := load(t)
	kept, _, _, err := client(t, w, true, false).Filter(foreign("f3", "1"), infos(w))
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) == 0 {
		t.Error("no node was kept")
	}
}

func TestPrioritizeScoresEveryNodeWithinTheRange(t *testing.T) {
	w := load(t)
	all := infos(w)
	scores, weight, err := client(t, w, true, true).Prioritize(foreign("p1", "1"), all)
	if err != nil {
		t.Fatal(err)
	}
	if weight != 1 || len(*scores) != len(all) {
		t.Errorf("weight %d, %d scores for %d nodes", weight, len(*scores), len(all))
	}
	for _, score := range *scores {
		if score.Score < extenderv1.MinExtenderPriority || score.Score > extenderv1.MaxExtenderPriority {
			t.Errorf("%s: score %d is outside 0..10", score.Host, score.Score)
		}
	}
}

func TestPreemptDropsCandidatesThatWouldSplitAGang(t *testing.T) {
	w := load(t)
	all := infos(w)
	candidates := map[string]*extenderv1.Victims{}
	for _, node := range all {
		if name := node.Node().Name; slices.Contains(w.GangNodes, name) {
			victims := &extenderv1.Victims{}
			for _, pod := range node.GetPods() {
				victims.Pods = append(victims.Pods, pod.GetPod())
			}
			candidates[name] = victims
		}
	}
	answer, err := client(t, w, true, true).ProcessPreemption(foreign("pre1", "8"), candidates, newLister(all))
	if err != nil {
		t.Fatal(err)
	}
	if len(answer) != 0 {
		t.Errorf("one member of a gang was given to the preemptor: %v", answer)
	}
}

func TestPreemptKeepsACandidateWithAnOrdinaryVictim(t *testing.T) {
	w := load(t)
	all := infos(w)
	candidates := map[string]*extenderv1.Victims{}
	for _, node := range all {
		for _, pod := range node.GetPods() {
			if pod.GetPod().Labels["e2e"] == "ordinary" {
				candidates[node.Node().Name] = &extenderv1.Victims{Pods: []*v1.Pod{pod.GetPod()}}
			}
		}
	}
	if len(candidates) == 0 {
		t.Fatal("the world has no ordinary pod (label e2e=ordinary) to offer")
	}
	answer, err := client(t, w, true, true).ProcessPreemption(foreign("pre2", "8"), candidates, newLister(all))
	if err != nil {
		t.Fatal(err)
	}
	for name, victims := range candidates {
		if kept := answer[name]; kept == nil || len(kept.Pods) != len(victims.Pods) {
			t.Errorf("%s: %d victims offered, answer %v", name, len(victims.Pods), kept)
		}
	}
}

func TestAClientWithoutACertificateIsRefused(t *testing.T) {
	w := load(t)
	extender := client(t, w, false, true)
	if _, _, _, err := extender.Filter(foreign("nocert", "1"), infos(w)); err == nil {
		t.Error("filter answered a client that showed no certificate")
	} else if !strings.Contains(err.Error(), "tls") && !strings.Contains(err.Error(), "certificate") &&
		!strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset") {
		t.Errorf("refused, but not by TLS: %v", err)
	}
	if _, _, err := extender.Prioritize(foreign("nocert", "1"), infos(w)); err == nil {
		t.Error("prioritize answered a client that showed no certificate")
	}
}

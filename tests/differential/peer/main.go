// Package main runs worlds of the differential test through Kueue's own scheduler, in one process.
// It reads a world per line on standard input and prints the settled outcome per line. Cycle n is
// at the decision time plus n seconds; who is preempted leaves at the end of the cycle, and queues
// again.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"time"
	_ "unsafe" // Steps of the scheduler are not exported.

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/scheduler"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/util/routine"
	"sigs.k8s.io/kueue/pkg/util/tas"
	utiltesting "sigs.k8s.io/kueue/pkg/util/testing"
	"sigs.k8s.io/kueue/pkg/util/wait"
	"sigs.k8s.io/kueue/pkg/workload"
)

const (
	maxCycles  = 120 // A world that still moves then never settles.
	idleCycles = 8   // So many without a change, and nothing will change: at most three flavors to scan.
)

//go:linkname schedule sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).schedule
func schedule(s *scheduler.Scheduler, ctx context.Context) wait.SpeedSignal

//go:linkname setAdmissionRoutineWrapper sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).setAdmissionRoutineWrapper
func setAdmissionRoutineWrapper(s *scheduler.Scheduler, wrapper routine.Wrapper)

// inline runs at once what the scheduler would hand to another goroutine.
type inline struct{}

func (inline) Run(f func()) { f() }

type world struct {
	Seed        uint64
	Fingerprint string
	FairSharing bool
	Strategies  []config.PreemptionStrategy
	List        struct{ Items []json.RawMessage }
}

type peer struct {
	ctx       context.Context
	log       logr.Logger
	client    client.WithWatch
	clock     *testingclock.FakeClock
	cache     *schdcache.Cache
	queues    *qcache.Manager
	flush     func()
	scheduler *scheduler.Scheduler
	workloads []string
	before    map[string]*kueue.Workload
	victims   map[string]string // The rule that took each victim first.
}

type objects struct {
	flavors   []*kueue.ResourceFlavor
	cohorts   []*kueue.Cohort
	queues    []*kueue.ClusterQueue
	locals    []*kueue.LocalQueue
	workloads []*kueue.Workload

	topologies []*kueue.Topology
	nodes      []*corev1.Node
	pods       []*corev1.Pod // Of others, bound.
}

func decode(raws []json.RawMessage) (objects, error) {
	var result objects
	for _, raw := range raws {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(raw, &kind); err != nil {
			return result, err
		}
		var err error
		switch kind.Kind {
		case "ResourceFlavor":
			result.flavors, err = appended(result.flavors, raw)
		case "Cohort":
			result.cohorts, err = appended(result.cohorts, raw)
		case "ClusterQueue":
			result.queues, err = appended(result.queues, raw)
		case "LocalQueue":
			result.locals, err = appended(result.locals, raw)
		case "Workload":
			result.workloads, err = appended(result.workloads, raw)
		case "Topology":
			result.topologies, err = appended(result.topologies, raw)
		case "Node":
			result.nodes, err = appended(result.nodes, raw)
		case "Pod":
			result.pods, err = appended(result.pods, raw)
		default:
			err = fmt.Errorf("kind %q", kind.Kind)
		}
		if err != nil {
			return result, err
		}
	}
	return result, nil
}

func appended[T any](list []*T, raw json.RawMessage) ([]*T, error) {
	object := new(T)
	err := json.Unmarshal(raw, object)
	return append(list, object), err
}

// scheme is made once, and small: the fake client goes over all of it for every patch.
var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(nodev1.AddToScheme(scheme))
	utilruntime.Must(kueue.AddToScheme(scheme))
	return scheme
}()

func newPeer(w world, cohorts bool) (*peer, error) {
	all, err := decode(w.List.Items)
	if err != nil {
		return nil, err
	}
	for _, queue := range all.queues {
		if cohorts && queue.Spec.CohortName == "" {
			queue.Spec.CohortName = kueue.CohortReference("of-" + queue.Name)
		}
	}
	p := &peer{
		log:     logr.Discard(),
		clock:   testingclock.NewFakeClock(time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)),
		before:  map[string]*kueue.Workload{},
		victims: map[string]string{},
	}
	p.ctx = ctrl.LoggerInto(context.Background(), p.log)
	stored := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}}
	for _, queue := range all.queues {
		stored = append(stored, queue)
	}
	for _, queue := range all.locals {
		stored = append(stored, queue)
	}
	for _, wl := range all.workloads {
		stored = append(stored, wl)
	}
	p.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithStatusSubresource(&kueue.Workload{}).
		WithIndex(&kueue.LocalQueue{}, indexer.QueueClusterQueueKey, indexer.IndexQueueClusterQueue).
		WithIndex(&kueue.Workload{}, indexer.WorkloadQueueKey, indexer.IndexWorkloadQueue).
		WithIndex(&kueue.Workload{}, indexer.WorkloadClusterQueueKey, indexer.IndexWorkloadClusterQueue).
		WithIndex(&corev1.LimitRange{}, indexer.LimitRangeHasContainerType, indexer.IndexLimitRangeHasContainerType).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: utiltesting.TreatSSAAsStrategicMerge}).Build()
	p.cache = schdcache.New(p.client, schdcache.WithFairSharing(w.FairSharing))
	expected := preemptexpectations.New()
	queues, requeuer := qcache.NewManagerForUnitTestsWithRequeuer(p.client, p.cache,
		qcache.WithClock(p.clock), qcache.WithPreemptionExpectations(expected))
	p.queues = queues
	p.flush = func() { requeuer.ProcessRequeues(p.ctx) }
	if err := p.tell(all); err != nil {
		return nil, err
	}
	var fair *config.FairSharing
	if w.FairSharing {
		fair = &config.FairSharing{PreemptionStrategies: w.Strategies}
	}
	p.scheduler = scheduler.New(p.queues, p.cache, p.client, &utiltesting.EventRecorder{},
		scheduler.WithFairSharing(fair), scheduler.WithClock(nil, p.clock),
		scheduler.WithPreemptionExpectations(expected))
	setAdmissionRoutineWrapper(p.scheduler, inline{})
	return p, nil
}

func (p *peer) tell(all objects) error {
	for _, topology := range all.topologies {
		p.cache.AddOrUpdateTopology(p.log, topology)
	}
	for _, node := range all.nodes {
		p.cache.TASCache().SyncNode(node)
	}
	for _, pod := range all.pods {
		p.cache.TASCache().Update(pod, p.log)
	}
	for _, flavor := range all.flavors {
		p.cache.AddOrUpdateResourceFlavor(p.log, flavor)
	}
	for _, cohort := range all.cohorts {
		if err := p.cache.AddOrUpdateCohort(cohort); err != nil {
			return err
		}
		p.queues.AddOrUpdateCohort(p.ctx, cohort)
	}
	for _, queue := range all.queues {
		// Its LocalQueues and what runs in it are read from the client.
		if err := p.cache.AddClusterQueue(p.ctx, queue); err != nil {
			return err
		}
		if err := p.queues.AddClusterQueue(p.ctx, queue); err != nil {
			return err
		}
	}
	for _, queue := range all.locals {
		if err := p.queues.AddLocalQueue(p.ctx, queue); err != nil {
			return err
		}
	}
	for _, wl := range all.workloads {
		p.workloads = append(p.workloads, wl.Name)
		current, err := p.get(wl.Name)
		if err != nil {
			return err
		}
		p.before[wl.Name] = current
	}
	return nil
}

func (p *peer) get(name string) (*kueue.Workload, error) {
	wl := &kueue.Workload{}
	err := p.client.Get(p.ctx, client.ObjectKey{Namespace: "team", Name: name}, wl)
	return wl, err
}

// observe does what Kueue's controllers do with the writes of a cycle: the scheduler's caches learn
// of them, and whoever was evicted leaves. True when somebody was admitted or evicted.
func (p *peer) observe() (bool, error) {
	moved := false
	for _, name := range p.workloads {
		now, err := p.get(name)
		if err != nil {
			return false, err
		}
		old := p.before[name]
		p.before[name] = now
		if now.ResourceVersion == old.ResourceVersion {
			continue
		}
		was, is := workload.HasQuotaReservation(old), workload.HasQuotaReservation(now)
		switch {
		case is && workload.IsEvicted(now):
			moved = true
			if err := p.leave(now); err != nil {
				return false, err
			}
		case is && !was:
			moved = true
			p.queues.DeleteWorkload(p.log, workload.Key(now))
			p.cache.AddOrUpdateWorkload(p.log, now.DeepCopy())
		case is:
			p.cache.AddOrUpdateWorkload(p.log, now.DeepCopy())
		default:
			if err := p.queues.UpdateWorkload(p.log, now.DeepCopy()); err != nil {
				return false, err
			}
		}
	}
	return moved, nil
}

func (p *peer) leave(wl *kueue.Workload) error {
	if cond := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadPreempted); cond != nil {
		if _, known := p.victims[wl.Name]; !known {
			p.victims[wl.Name] = cond.Reason
		}
	}
	released := wl.DeepCopy()
	workload.SetRequeuedCondition(released, kueue.WorkloadEvictedByPreemption, "", true)
	workload.UnsetQuotaReservationWithCondition(released, "Pending", "", p.clock.Now())
	workload.SyncAdmittedCondition(released, p.clock.Now())
	if err := p.client.Status().Update(p.ctx, released); err != nil {
		return err
	}
	now, err := p.get(wl.Name)
	if err != nil {
		return err
	}
	p.before[wl.Name] = now
	key := workload.Key(now)
	var failed error
	p.queues.QueueAssociatedInadmissibleWorkloadsAfter(p.ctx, key, func() {
		if failed = p.cache.DeleteWorkload(p.log, key); failed == nil {
			failed = p.queues.AddOrUpdateWorkloadWithoutLock(p.log, now.DeepCopy())
		}
	})
	return failed
}

// run returns false when the world does not settle.
func (p *peer) run() (bool, error) {
	idle := 0
	last := ""
	for cycle := 1; cycle <= maxCycles; cycle++ {
		p.flush()
		waiting := p.queues.Dump()
		if len(waiting) == 0 {
			return true, nil
		}
		for _, names := range waiting {
			slices.Sort(names)
		}
		heads := fmt.Sprint(waiting)
		p.clock.Step(time.Second)
		schedule(p.scheduler, p.ctx)
		moved, err := p.observe()
		if err != nil {
			return false, err
		}
		if moved || heads != last {
			idle = 0
		} else if idle++; idle == idleCycles {
			return true, nil
		}
		last = heads
	}
	return false, nil
}

var ruleLetter = map[string]string{
	kueue.InClusterQueueReason:                "Q",
	kueue.InCohortReclamationReason:           "R",
	kueue.InCohortReclaimWhileBorrowingReason: "B",
	kueue.InCohortFairSharingReason:           "F",
}

// outcome is one token for each workload that holds quota (`3=f0`, `4=f0.f1+f2*2`: flavors by name
// of resource where they differ, pod sets joined by +, a count below the asked one after *; with a
// topology the pods of each lowest domain, `3=f0@x1:2,x3:1`), and one for each that was preempted
// (`!2R`).
func (p *peer) outcome(settled bool) string {
	var tokens []string
	for _, name := range p.workloads {
		wl := p.before[name]
		if !workload.HasQuotaReservation(wl) {
			continue
		}
		var sets []string
		for i, assignment := range wl.Status.Admission.PodSetAssignments {
			text := flavorsOf(assignment)
			if *assignment.Count != wl.Spec.PodSets[i].Count {
				text += fmt.Sprintf("*%d", *assignment.Count)
			}
			sets = append(sets, text+domainsOf(assignment))
		}
		tokens = append(tokens, strings.TrimPrefix(name, "w")+"="+strings.Join(sets, "+"))
	}
	for _, name := range p.workloads {
		if rule, victim := p.victims[name]; victim {
			tokens = append(tokens, "!"+strings.TrimPrefix(name, "w")+ruleLetter[rule])
		}
	}
	if !settled {
		tokens = append(tokens, "endless")
	}
	return strings.Join(tokens, " ")
}

func flavorsOf(assignment kueue.PodSetAssignment) string {
	var resources []string
	for resource := range assignment.Flavors {
		resources = append(resources, string(resource))
	}
	sort.Strings(resources)
	var flavors []string
	same := true
	for _, resource := range resources {
		flavors = append(flavors, string(assignment.Flavors[corev1.ResourceName(resource)]))
		same = same && flavors[0] == flavors[len(flavors)-1]
	}
	if same && len(flavors) > 0 {
		return flavors[0]
	}
	return strings.Join(flavors, ".")
}

func domainsOf(assignment kueue.PodSetAssignment) string {
	if assignment.TopologyAssignment == nil {
		return ""
	}
	var domains []string
	for domain := range tas.InternalSeqFrom(assignment.TopologyAssignment) {
		domains = append(domains, fmt.Sprintf("%s:%d", domain.Values[len(domain.Values)-1], domain.Count))
	}
	return "@" + strings.Join(domains, ",")
}

// crash is the answer where the scheduler does.
const crash = "crash"

// answer runs the world; with cohorts, every queue without a cohort has one of its own.
func answer(w world, cohorts bool) (text string, err error) {
	defer func() {
		if recover() != nil {
			text, err = crash, nil
		}
	}()
	p, err := newPeer(w, cohorts)
	if err != nil {
		return "", err
	}
	settled, err := p.run()
	if err != nil {
		return "", err
	}
	return p.outcome(settled), nil
}

func main() {
	// Where several answers are possible (the order of Go maps decides), all that are seen are printed.
	runs := flag.Int("runs", 2, "times each world is run")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	// Slices inside slices: in this release behind a gate, in the specification not.
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.Set(string(features.TASMultiLayerTopology) + "=true"))
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<22)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var w world
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		seen := map[string]bool{}
		for range *runs {
			text, err := answer(w, false)
			if err == nil && text == crash {
				// Under fair sharing a search that runs out of victims needs a cohort not to crash. One
				// with a single queue lends nothing and takes nothing.
				seen[crash] = true
				text, err = answer(w, true)
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "seed %d: %v\n", w.Seed, err)
				os.Exit(1)
			}
			seen[text] = true
		}
		var all []string
		for text := range seen {
			all = append(all, text)
		}
		sort.Strings(all)
		fmt.Fprintf(out, "%d %s %s\n", w.Seed, w.Fingerprint, strings.Join(all, " | "))
	}
}

package nats_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// on runs a command on a host that scripts/hosts has made, and returns what it prints.
func on(t *testing.T, host, command string) string {
	t.Helper()
	out, err := exec.Command(os.Getenv("SHOAL_HOSTS_AGENT"), host, command).CombinedOutput()
	if code := (*exec.ExitError)(nil); errors.As(err, &code) && code.ExitCode() == 77 {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Fatalf("%s on %s: %v\n%s", command, host, err, out)
	}
	return strings.TrimSpace(string(out))
}

// link pulls the cable of a host, or puts it back.
func link(t *testing.T, host, state string) {
	t.Helper()
	on(t, host, "ip link set eth0 "+state)
}

// A fleet is a broker of three nodes on three hosts, each shoal-broker, and what uses it on others.
type fleet struct {
	t       *testing.T // that the nodes end with
	program string     // shoal-broker
	dir     string
	nodes   map[string]*process
	url     string // of all nodes
	conn    *nats.Conn
	raw     jetstream.JetStream // it knows which node leads a stream
}

// newFleet starts the three nodes on hosts h1 to h3.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), nodes: make(map[string]*process), program: os.Getenv("SHOAL_BROKER")}
	if f.program == "" {
		f.program = filepath.Join(f.dir, "shoal-broker")
		if out, err := exec.Command("go", "build", "-o", f.program, "../cmd/shoal-broker").
			CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	testutil.NoError(t, os.WriteFile(filepath.Join(f.dir, "password"), []byte("word"), 0o600))
	var urls []string
	for _, host := range []string{"h1", "h2", "h3"} {
		f.start(host)
		urls = append(urls, "nats://u:word@"+host+":4222")
	}
	f.url = strings.Join(urls, ",")
	ctx := testutil.Context(t)
	var q *nats.Queue[int]
	testutil.Eventually(t, func() bool {
		if f.conn == nil {
			c, err := nats.Connect(ctx, f.url, nats.Options{})
			if err != nil {
				return false
			}
			f.conn = c
		}
		var err error
		q, err = nats.OpenQueue[int](ctx, f.conn, "ready", nats.QueueOptions{})
		return err == nil
	}, "the cluster refuses queues")
	testutil.NoError(t, q.Close())
	t.Cleanup(func() { f.conn.Close() })
	nc, err := client.Connect(f.url, client.MaxReconnects(-1), client.ReconnectWait(100*time.Millisecond))
	testutil.NoError(t, err)
	t.Cleanup(nc.Close)
	f.raw, err = jetstream.New(nc)
	testutil.NoError(t, err)
	t.Logf("engine=%q", "NATS "+nc.ConnectedServerVersion()) // for make cluster
	return f
}

// start starts the node of a host, which may have been there before.
func (f *fleet) start(host string) {
	f.t.Helper()
	peers := slices.DeleteFunc([]string{"h1", "h2", "h3"}, func(h string) bool { return h == host })
	f.nodes[host] = f.run(f.t, host, "", "exec "+f.program+" -quiet -host 0.0.0.0 -name "+host+" -peers "+
		strings.Join(peers, ",")+" -user u -password-file "+f.dir+"/password -dir "+f.dir+"/"+host)
	f.nodes[host].line(f.t)
}

// run starts a command on a host.
func (f *fleet) run(t *testing.T, host, role, command string, env ...string) *process {
	t.Helper()
	return begin(t, exec.Command(os.Getenv("SHOAL_HOSTS_AGENT"), host, command), role, env...)
}

// leader returns the host whose node leads the stream of a queue.
func (f *fleet) leader(t *testing.T, queue string) (host string) {
	t.Helper()
	testutil.Eventually(t, func() bool {
		s, err := f.raw.Stream(t.Context(), "SHOAL_Q_"+queue)
		if err != nil {
			return false
		}
		host = s.CachedInfo().Cluster.Leader
		return host != ""
	}, "the queue has no leader")
	return host
}

// A transfer is a queue with two producers and two consumers, one of each on h4 and on h5.
type transfer struct {
	f     *fleet
	queue string
	dir   string
	q     *nats.Queue[*tensor.Tensor]
	all   map[string]*process
}

const eachPuts = 300 // values that a producer puts

func (f *fleet) transfer(t *testing.T, queue string) *transfer {
	t.Helper()
	return f.transferBy(t, queue, false)
}

// transferBy is transfer where what is on h4 is connected to the node that leads, if atLeader.
func (f *fleet) transferBy(t *testing.T, queue string, atLeader bool) *transfer {
	t.Helper()
	tr := &transfer{f: f, queue: queue, dir: t.TempDir(), all: make(map[string]*process)}
	testutil.Eventually(t, func() bool {
		var err error
		tr.q, err = nats.OpenQueue[*tensor.Tensor](t.Context(), f.conn, queue,
			nats.QueueOptions{AckWait: 2 * time.Second, MaxDeliveries: 1000})
		return err == nil
	}, "not all three nodes are there")
	t.Cleanup(func() { tr.q.Close() })
	at := make(map[string]string)
	if atLeader {
		at["h4"] = f.leader(t, queue)
	}
	for i, host := range []string{"h4", "h5"} {
		for _, role := range []string{"producer", "consumer"} {
			tr.all[role+" "+host] = f.run(t, host, role, "exec "+os.Args[0], urlVar+"="+f.url,
				atVar+"="+at[host], queueVar+"="+queue,
				ledgerVar+"="+tr.ledger(role, host), rangeVar+"="+fmt.Sprint(i*eachPuts, " ", (i+1)*eachPuts))
		}
	}
	return tr
}

func (tr *transfer) ledger(role, host string) string { return filepath.Join(tr.dir, role+host) }

// wrote returns how many lines a ledger has.
func (tr *transfer) wrote(role, host string) int { return max(0, len(lines(tr.ledger(role, host)))-1) }

// goOn waits until both producers have put more values than now, if they have any left.
func (tr *transfer) goOn(t *testing.T, limit time.Duration) {
	t.Helper()
	begun, before := time.Now(), make(map[string]int)
	for _, host := range []string{"h4", "h5"} {
		before[host] = tr.wrote("producer", host)
	}
	for _, host := range []string{"h4", "h5"} {
		for tr.wrote("producer", host) < min(before[host]+20, eachPuts) {
			if time.Since(begun) > limit {
				t.Errorf("the producer on %s has not gone on after %v", host, limit)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Logf("the producer on %s has gone on after %v", host, time.Since(begun).Round(time.Millisecond))
	}
}

// middle waits until both producers are in the middle.
func (tr *transfer) middle(t *testing.T) {
	t.Helper()
	for _, host := range []string{"h4", "h5"} {
		testutil.Eventually(t, func() bool { return tr.wrote("producer", host) >= eachPuts/5 },
			"the producer makes no progress")
		if n := tr.wrote("producer", host); n >= eachPuts {
			t.Errorf("the producer on %s is done before anything has happened", host)
		}
	}
}

// end waits until all is done, and audits the ledgers: each value was put, acknowledged by one
// consumer, and never given out after that.
func (tr *transfer) end(t *testing.T) {
	t.Helper()
	wait := func(name string) {
		t.Helper()
		p := tr.all[name]
		ended := make(chan error, 1)
		go func() { ended <- p.Wait() }()
		select {
		case err := <-ended:
			if p.ended = true; err != nil {
				t.Errorf("the %s: %v", name, err)
			}
		case <-time.After(2 * time.Minute):
			p.Process.Kill()
			<-ended
			p.ended = true
			t.Errorf("the %s hangs", name)
		}
	}
	wait("producer h4")
	wait("producer h5")
	testutil.NoError(t, tr.q.Finish(t.Context()))
	wait("consumer h4")
	wait("consumer h5")
	const values = 2 * eachPuts
	ledgers := []string{tr.ledger("consumer", "h4"), tr.ledger("consumer", "h5")}
	taken, done := audit(t, ledgers, values)
	ends := make(map[int]string) // of each value: acknowledged, or not known
	for _, l := range slices.Concat(lines(ledgers[0]), lines(ledgers[1])) {
		var what string
		var v int
		if fmt.Sscan(l, &what, &v); what == "done" || what == "unsure" && ends[v] == "" {
			ends[v] = what
		}
	}
	lost := values - len(ends)
	unsure := 0
	for what := range maps.Values(ends) {
		if what == "unsure" {
			unsure++
		}
	}
	if lost > 0 {
		t.Errorf("%d values were never acknowledged", lost)
	}
	if s := count(t, tr.q); s.Waiting+s.Taken+s.Dead != 0 {
		t.Errorf("the broker keeps %+v", s)
	}
	t.Logf("%d values, taken %d times, %d not known whether acknowledged: lost=%d duplicates=%d", values, taken, unsure,
		lost, done+unsure-len(ends))
}

// TestHosts_Queue has producers and consumers on hosts of their own, and a broker of three nodes on
// others. In the middle of each transfer something happens to one of the hosts.
func TestHosts_Queue(t *testing.T) {
	if len(strings.Fields(os.Getenv("SHOAL_HOSTS"))) < 6 {
		t.Skip("no hosts: make cluster makes them, by scripts/hosts")
	}
	f := newFleet(t)
	t.Run("leading_broker_is_killed", func(t *testing.T) {
		tr := f.transfer(t, "killed-broker")
		tr.middle(t)
		leader := f.leader(t, tr.queue)
		f.nodes[leader].kill()
		tr.goOn(t, 40*time.Second) // two of three nodes
		f.start(leader)
		tr.end(t)
	})
	t.Run("leading_host_is_cut_off", func(t *testing.T) {
		tr := f.transfer(t, "cut-leader")
		tr.middle(t)
		leader := f.leader(t, tr.queue)
		link(t, leader, "down")
		defer link(t, leader, "up")
		tr.goOn(t, 40*time.Second) // two of three nodes
		link(t, leader, "up")
		tr.end(t)
	})
	t.Run("leading_host_is_cut_off_from_the_other_nodes_alone", func(t *testing.T) {
		// The consumer on h4 is at the node that leads, which goes on to speak to it.
		tr := f.transferBy(t, "cut-nodes", true)
		tr.middle(t)
		leader := f.leader(t, tr.queue)
		for host := range f.nodes {
			if host != leader {
				address := strings.Fields(on(t, leader, "getent hosts "+host))[0]
				on(t, leader, "ip route add blackhole "+address)
				defer on(t, leader, "ip route del blackhole "+address)
			}
		}
		tr.goOn(t, 60*time.Second)
		tr.end(t)
	})
	t.Run("producer_and_consumer_are_cut_off", func(t *testing.T) {
		tr := f.transfer(t, "cut-client")
		tr.middle(t)
		link(t, "h5", "down")
		defer link(t, "h5", "up")
		// What the consumer on h5 has taken comes to that on h4, which ends all but what h5 has yet
		// to put.
		testutil.Eventually(t, func() bool {
			return tr.wrote("producer", "h4") == eachPuts && count(t, tr.q).Waiting+count(t, tr.q).Taken == 0
		}, "the others do not go on")
		if n := tr.wrote("producer", "h5"); n >= eachPuts {
			t.Errorf("the host that was cut off has put %d values", n)
		}
		link(t, "h5", "up")
		tr.end(t)
	})
	t.Run("producer_and_consumer_are_cut_off_shortly", func(t *testing.T) {
		tr := f.transfer(t, "cut-shortly")
		tr.middle(t)
		// Longer than AckWait, and so shortly that no connection ends.
		link(t, "h5", "down")
		defer link(t, "h5", "up")
		time.Sleep(5 * time.Second)
		link(t, "h5", "up")
		tr.end(t)
	})
	t.Run("packets_are_lost", func(t *testing.T) {
		self := os.Getenv("SHOAL_HOSTS_AGENT")
		lossy := []string{"h4", "h5", f.leader(t, "ready")}
		for _, host := range lossy {
			t.Logf("%s loses packets by %s", host, on(t, host, self+" --lossy"))
			defer on(t, host, self+" --lossless")
		}
		tr := f.transfer(t, "lossy")
		tr.end(t)
		for _, host := range lossy {
			n, err := strconv.Atoi(on(t, host, self+" --lost"))
			if err != nil || n == 0 {
				t.Errorf("%s has lost %d packets: %v", host, n, err)
			}
			t.Logf("%s has lost %d packets", host, n)
		}
	})
}

// A value that two brokers of three have is there when all three were killed at once.
func TestHosts_AllBrokersAreKilled(t *testing.T) {
	if len(strings.Fields(os.Getenv("SHOAL_HOSTS"))) < 6 {
		t.Skip("no hosts: make cluster makes them, by scripts/hosts")
	}
	f := newFleet(t)
	t.Run("and_started", func(t *testing.T) {
		tr := f.transfer(t, "all-killed")
		tr.middle(t)
		for host := range maps.Clone(f.nodes) {
			f.nodes[host].kill()
		}
		for _, host := range slices.Sorted(maps.Keys(f.nodes)) {
			f.start(host)
		}
		tr.end(t)
	})
}

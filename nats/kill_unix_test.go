//go:build unix

package nats_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// What a process is told by its environment.
const (
	urlVar    = "SHOAL_TEST_NATS_URL"
	ledgerVar = "SHOAL_TEST_NATS_LEDGER" // the file where it writes what it has done
	rangeVar  = "SHOAL_TEST_NATS_RANGE"
	nodeVar   = "SHOAL_TEST_NATS_NODE"
	queueVar  = "SHOAL_TEST_NATS_QUEUE" // the queue's name, if it is not killedQueue
	atVar     = "SHOAL_TEST_NATS_AT"    // the broker's host of several, if it is not any
)

func init() {
	roles["node"], roles["producer"], roles["consumer"], roles["sleeper"] = runNode, runProducer,
		runConsumer, runSleeper
}

// A process is one that plays a role.
type process struct {
	*exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ended bool
}

func play(t testing.TB, role string, env ...string) *process {
	t.Helper()
	return begin(t, exec.Command(os.Args[0]), role, env...)
}

// begin starts a command as a process that plays a role.
func begin(t testing.TB, cmd *exec.Cmd, role string, env ...string) *process {
	t.Helper()
	p := &process{Cmd: cmd}
	p.Env = append(append(os.Environ(), roleVar+"="+role), env...)
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	testutil.NoError(t, err)
	out, err := p.StdoutPipe()
	testutil.NoError(t, err)
	p.in, p.out = in, bufio.NewReader(out)
	testutil.NoError(t, p.Start())
	t.Cleanup(p.kill)
	return p
}

// kill kills by -9.
func (p *process) kill() {
	if !p.ended {
		p.ended = true
		p.Process.Kill()
		p.Wait()
	}
}

func (p *process) line(t testing.TB) string {
	t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("a process says %q, %v", s, err)
	}
	return strings.TrimSpace(s)
}

const killedQueue = "killed"

// The values of producers are tensors, of which some are large.
func valueOf(i int) *tensor.Tensor {
	n := 4
	if i%20 == 7 {
		n = 400_000
	}
	return tensor.Full(tensor.Int32, float64(i), n)
}

// connectAt connects to one of the brokers, or to the one that it was told.
func connectAt(ctx context.Context) (*nats.Conn, error) {
	for {
		c, err := nats.Connect(ctx, os.Getenv(urlVar), nats.Options{})
		if err != nil || strings.HasPrefix(c.Host(), os.Getenv(atVar)) {
			return c, err
		}
		c.Close()
	}
}

// runProducer puts the values of its range that its ledger does not have, and writes each to it.
func runProducer(ctx context.Context) error {
	c, err := connectAt(ctx)
	if err != nil {
		return err
	}
	q, err := nats.OpenQueue[*tensor.Tensor](ctx, c, cmp.Or(os.Getenv(queueVar), killedQueue), nats.QueueOptions{})
	if err != nil {
		return err
	}
	var from, to int
	fmt.Sscan(os.Getenv(rangeVar), &from, &to)
	l, err := os.OpenFile(os.Getenv(ledgerVar), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		x := valueOf(i)
		if _, err := q.PutOnce(ctx, strconv.Itoa(i), x); err != nil {
			return err
		}
		x.Close()
		fmt.Fprintf(l, "%d\n", i)
	}
	return nil
}

// runConsumer takes values until the queue is finished, and writes what it takes and what it has
// acknowledged, with the time of each.
func runConsumer(ctx context.Context) error {
	c, err := connectAt(ctx)
	if err != nil {
		return err
	}
	q, err := nats.OpenQueue[*tensor.Tensor](ctx, c, cmp.Or(os.Getenv(queueVar), killedQueue), nats.QueueOptions{})
	if err != nil {
		return err
	}
	l, err := os.OpenFile(os.Getenv(ledgerVar), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	for d, err := range q.Deliveries(ctx) {
		if err != nil {
			return err
		}
		v := tensor.Data[int32](d.Value)
		fmt.Fprintf(l, "take %d %d\n", v[0], time.Now().UnixNano())
		for _, e := range v {
			if e != v[0] {
				return fmt.Errorf("%d among %d", e, v[0])
			}
		}
		d.Value.Close()
		time.Sleep(3 * time.Millisecond) // what it does with the value
		switch err := d.Ack(ctx); {
		case err == nil:
			fmt.Fprintf(l, "done %d %d\n", v[0], time.Now().UnixNano())
		case errors.Is(err, nats.ErrUncertain):
			fmt.Fprintf(l, "unsure %d %d\n", v[0], time.Now().UnixNano())
		case errors.Is(err, nats.ErrExpired):
			fmt.Fprintf(l, "late %d %d\n", v[0], time.Now().UnixNano())
		default:
			return err
		}
	}
	return nil
}

// lines returns the lines of a file that are whole.
func lines(path string) []string {
	b, _ := os.ReadFile(path)
	s := string(b)
	return strings.Split(s[:strings.LastIndexByte(s, '\n')+1], "\n")
}

// A take is a line of a ledger, with what became of the value: the consumer was killed before the
// end, or its acknowledgement may have been refused.
type take struct {
	at             int64
	ended, refused bool
}

// audit reads the ledgers of consumers: how often each value was taken, and which were lost or
// acknowledged twice. A value may come again after it was acknowledged if AckWait ended before: it
// was on its way then. The acknowledgement of the second consumer must be refused.
func audit(t *testing.T, ledgers []string, values int) (taken, done int) {
	t.Helper()
	doneAt, takes := make(map[int]int64), make(map[int][]*take)
	for _, path := range ledgers {
		last := new(take)
		for _, l := range lines(path) {
			var what string
			var v int
			var at int64
			if n, _ := fmt.Sscan(l, &what, &v, &at); n < 3 {
				continue
			}
			switch what {
			case "take":
				last = &take{at: at}
				takes[v] = append(takes[v], last)
				taken++
			case "late":
				last.ended, last.refused = true, true
			case "done":
				last.ended = true
				if doneAt[v] != 0 {
					t.Errorf("value %d was acknowledged twice", v)
				}
				doneAt[v] = at
				done++
			}
		}
	}
	for v := range values {
		if takes[v] == nil {
			t.Errorf("value %d is lost", v)
		}
		for _, again := range takes[v] {
			if doneAt[v] != 0 && again.at > doneAt[v] && again.ended && !again.refused {
				t.Errorf("value %d came again after it was acknowledged, and was not refused", v)
			}
		}
	}
	if extra := slices.Max(slices.Collect(maps.Keys(takes))); extra >= values {
		t.Errorf("value %d was never put", extra)
	}
	return taken, done
}

// Producers and consumers are killed by -9 again and again, and started anew. The ledgers have each
// value: none is lost, and none is acknowledged twice.
func TestQueue_ProcessesAreKilled(t *testing.T) {
	ctx := testutil.Context(t)
	url := start(t, broker.Options{MaxPayload: 256 << 10}).URL()
	q := open[*tensor.Tensor](t, connect(t, url), killedQueue,
		nats.QueueOptions{AckWait: time.Second, MaxDeliveries: 1000})
	dir := t.TempDir()
	const producers, consumers, each = 2, 3, 150
	produce := func(i int) *process {
		ledger := filepath.Join(dir, "put"+strconv.Itoa(i))
		at := i*each + max(0, len(lines(ledger))-1) // what it has not written may be put: the id says
		return play(t, "producer", urlVar+"="+url, ledgerVar+"="+ledger,
			rangeVar+"="+fmt.Sprint(at, " ", (i+1)*each))
	}
	consume := func(i int) *process {
		return play(t, "consumer", urlVar+"="+url, ledgerVar+"="+filepath.Join(dir, "got"+strconv.Itoa(i)))
	}
	ps, cs := make([]*process, producers), make([]*process, consumers)
	for i := range ps {
		ps[i] = produce(i)
	}
	for i := range cs {
		cs[i] = consume(i)
	}
	put := func(i int) string { return filepath.Join(dir, "put"+strconv.Itoa(i)) }
	whole := func(i int) bool { return len(lines(put(i))) > each }
	// Each is killed when it has worked for a while, so that it is in the middle of something.
	kills := 0
	since := make(map[string]int)
	worked := func(ledger string, by int) bool {
		n := len(lines(ledger))
		if n < since[ledger]+by {
			return false
		}
		since[ledger] = n
		kills++
		return true
	}
	for !whole(0) || !whole(1) {
		testutil.NoError(t, context.Cause(ctx))
		for i := range ps {
			if !whole(i) && worked(put(i), 25) {
				ps[i].kill()
				ps[i] = produce(i)
			}
		}
		for i := range cs {
			if worked(filepath.Join(dir, "got"+strconv.Itoa(i)), 30) {
				cs[i].kill()
				cs[i] = consume(i)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, p := range ps {
		testutil.NoError(t, p.Wait())
		p.ended = true
	}
	testutil.NoError(t, q.Finish(ctx))
	var ledgers []string
	for i, c := range cs {
		testutil.NoError(t, c.Wait())
		c.ended = true
		ledgers = append(ledgers, filepath.Join(dir, "got"+strconv.Itoa(i)))
	}
	taken, done := audit(t, ledgers, producers*each)
	t.Logf("%d kills, %d values, taken %d times, %d acknowledgements seen", kills, producers*each, taken, done)
	if kills < 4 {
		t.Errorf("only %d kills", kills)
	}
	if s := count(t, q); s.Waiting+s.Taken+s.Dead != 0 {
		t.Errorf("the broker keeps %+v", s)
	}
}

// runSleeper takes a value, is stopped, and acknowledges it late.
func runSleeper(ctx context.Context) error {
	c, err := connectAt(ctx)
	if err != nil {
		return err
	}
	q, err := nats.OpenQueue[int](ctx, c, "stopped", nats.QueueOptions{})
	if err != nil {
		return err
	}
	d, err := q.Next(ctx)
	if err != nil {
		return err
	}
	fmt.Println("taken")
	bufio.NewReader(os.Stdin).ReadString('\n')
	if err := d.Ack(ctx); errors.Is(err, nats.ErrExpired) {
		fmt.Println("expired")
	} else {
		fmt.Println(err)
	}
	return nil
}

// A consumer is stopped for longer than AckWait: another one gets the value, and the late
// acknowledgement is refused.
func TestDelivery_AStoppedConsumer(t *testing.T) {
	ctx := testutil.Context(t)
	url := start(t, broker.Options{}).URL()
	q := open[int](t, connect(t, url), "stopped", nats.QueueOptions{AckWait: 500 * time.Millisecond})
	testutil.NoError(t, q.Put(ctx, 1))
	p := play(t, "sleeper", urlVar+"="+url)
	if l := p.line(t); l != "taken" {
		t.Fatal(l)
	}
	testutil.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	d, err := q.Next(ctx)
	testutil.NoError(t, err)
	if d.Attempt < 2 {
		t.Errorf("attempt %d", d.Attempt)
	}
	testutil.NoError(t, p.Process.Signal(syscall.SIGCONT))
	io.WriteString(p.in, "\n")
	if l := p.line(t); l != "expired" {
		t.Errorf("its acknowledgement: %s", l)
	}
	testutil.NoError(t, p.Wait())
	p.ended = true
	if s := count(t, q); s.Taken != 1 {
		t.Errorf("%+v", s)
	}
	testutil.NoError(t, d.Ack(ctx))
	if s := count(t, q); s != (nats.QueueStats{}) {
		t.Errorf("the broker keeps %+v", s)
	}
}

// runNode is a node of a cluster.
func runNode(context.Context) error {
	var o broker.Options
	if err := json.Unmarshal([]byte(os.Getenv(nodeVar)), &o); err != nil {
		return err
	}
	b, err := broker.Start(o)
	if err != nil {
		return err
	}
	fmt.Println(b.URL())
	io.Copy(io.Discard, os.Stdin)
	return b.Close()
}

// cluster returns how to start three nodes, each a process, and their URLs. Each has its data in
// one of the folders, or in a new one.
func cluster(t testing.TB, dirs ...string) (starts []func() *process, urls []string) {
	t.Helper()
	for len(dirs) < 3 {
		dirs = append(dirs, t.TempDir())
	}
	ports := make([]int, 6)
	for i := range ports {
		l := listenLow(t)
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	var routes []string
	for _, p := range ports[3:] {
		routes = append(routes, fmt.Sprint("127.0.0.1:", p))
	}
	for i := range 3 {
		o, err := json.Marshal(broker.Options{Name: fmt.Sprint("node", i), Port: ports[i], Dir: dirs[i],
			Cluster: "test", ClusterPort: ports[3+i], Routes: routes})
		testutil.NoError(t, err)
		starts = append(starts, func() *process { return play(t, "node", nodeVar+"="+string(o)) })
		urls = append(urls, fmt.Sprint("nats://127.0.0.1:", ports[i]))
	}
	return starts, urls
}

// listenLow listens at a port below those that systems give to connections, which begin at 32768 on
// Linux. The node that gets it starts later, and no connection that is made meanwhile takes it.
func listenLow(t testing.TB) net.Listener {
	t.Helper()
	for tries := 0; ; tries++ {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20000+rand.IntN(12000)))
		if err == nil {
			return l
		}
		if tries > 1000 {
			t.Fatalf("no port is free: %v", err)
		}
	}
}

// A program connects while the nodes of a cluster have no leader yet.
func TestConnect_WhileAClusterHasNoLeader(t *testing.T) {
	t.Parallel() // it waits
	ctx := testutil.Context(t)
	starts, urls := cluster(t)
	starts[0]().line(t)
	var c *nats.Conn
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, failed = nats.Connect(ctx, urls[0], nats.Options{})
	}()
	time.Sleep(6 * time.Second) // longer than one request waits
	select {
	case <-done:
		t.Fatalf("one node of three answers: %v", failed)
	default:
	}
	for _, start := range starts[1:] {
		start().line(t)
	}
	<-done
	testutil.NoError(t, failed)
	t.Cleanup(func() { testutil.NoError(t, c.Close()) })
	testutil.NoError(t, open[int](t, c, "early", nats.QueueOptions{}).Put(ctx, 1))
}

// One of three brokers is killed by -9 in the middle, and later is back. What was put is there,
// once.
func TestQueue_OneOfThreeBrokersIsKilled(t *testing.T) {
	t.Parallel() // it waits
	ctx := testutil.Context(t)
	starts, urls := cluster(t)
	nodes := make([]*process, 3)
	for i, s := range starts {
		nodes[i] = s()
	}
	for _, n := range nodes {
		n.line(t)
	}
	var c *nats.Conn
	var q *nats.Queue[int]
	testutil.Eventually(t, func() (ok bool) {
		var err error
		if c == nil {
			if c, err = nats.Connect(ctx, strings.Join(urls, ","), nats.Options{}); err != nil {
				c = nil
				return false
			}
		}
		q, err = nats.OpenQueue[int](ctx, c, "replicated", nats.QueueOptions{MaxDeliveries: 1000})
		return err == nil
	}, "the cluster refuses queues")
	t.Cleanup(func() { q.Close(); c.Close() })
	const values = 300
	put := make(chan error, 1)
	go func() {
		for i := range values {
			if err := q.Put(ctx, i); err != nil {
				put <- fmt.Errorf("put %d: %w", i, err)
				return
			}
		}
		put <- nil
	}()
	seen := make(map[int]int)
	for n := 0; len(seen) < values; n++ {
		switch n {
		case 60:
			nodes[0].kill()
		case 150:
			nodes[0] = starts[0]()
			nodes[0].line(t)
		}
		d, err := q.Next(ctx)
		if err != nil {
			t.Fatalf("after %d: %v", len(seen), err)
		}
		if err := d.Ack(ctx); err != nil {
			t.Fatalf("acknowledge %d: %v", d.Value, err)
		}
		seen[d.Value]++
	}
	testutil.NoError(t, <-put)
	for v, n := range seen {
		if n != 1 {
			t.Errorf("%d came %d times after it was acknowledged", v, n)
		}
	}
}

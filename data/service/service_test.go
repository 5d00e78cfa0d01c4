package service_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

var key = []byte("16 random bytes.")

// numbers is a data set of which each sample says its number, and what is random in it.
type numbers struct {
	n     int
	sleep time.Duration
	bad   int // sample that fails, -1 for none
}

func (s numbers) Len() int { return s.n }

func (s numbers) Get(ctx context.Context, i int) (data.Sample, error) {
	time.Sleep(s.sleep)
	if i == s.bad {
		return nil, errBad
	}
	return data.Sample{tensor.FromSlice([]int64{int64(i)}, 1),
		tensor.FromSlice([]float32{data.Rand(ctx).Float32()}, 1)}, nil
}

var errBad = errors.New("this sample is bad")

func init() { wire.RegisterError("service_test.errBad", errBad) }

func loader(s numbers, change func(o *data.Options)) *data.Loader {
	o := data.Options{BatchSize: 4, Shuffle: true, Seed: 7, Workers: 2}
	if change != nil {
		change(&o)
	}
	return data.NewLoader(s, o)
}

// A job is what a process of this test binary does instead of tests, as JSON in SERVICE_JOB.
type job struct {
	Role     string // "host" or "trainer"
	Samples  int
	Sleep    time.Duration // a sample takes, or a step
	Addr     string
	Seed     uint64
	Ledger   string // of a host
	Patience time.Duration

	Hosts       []string // of a trainer
	Rank, World int
	State       *data.State
	Epochs      int
	Dynamic     bool
	Unencrypted bool
	Stream      bool // of a host: the numbers are a Stream
}

func TestMain(m *testing.M) {
	if text := os.Getenv("SERVICE_JOB"); text != "" {
		var j job
		err := json.Unmarshal([]byte(text), &j)
		if err == nil {
			err = map[string]func(job) error{"host": beHost, "trainer": beTrainer}[j.Role](j)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	shoaltest.TestMain(m)
}

// beHost serves until its input ends, and prints its address.
func beHost(j job) error {
	s := numbers{j.Samples, j.Sleep, -1}
	l := loader(s, func(o *data.Options) { o.Seed = j.Seed })
	if j.Stream {
		l = streamLoader(series{s}, nil)
	}
	defer l.Close()
	h, err := service.Listen(l, j.Addr, service.HostOptions{Key: key, Ledger: j.Ledger, Patience: j.Patience,
		Unencrypted: j.Unencrypted})
	if err != nil {
		return err
	}
	defer h.Close()
	fmt.Println(h.Addr())
	_, err = io.Copy(io.Discard, os.Stdin) // it ends with the test, however that ends
	return err
}

// A step is a line of a trainer's ledger: what it got, and its state then.
type step struct {
	Epoch   int
	Samples []int64
	State   data.State
}

// beTrainer prints a step for each batch, in one write.
func beTrainer(j job) error {
	l, err := service.Dial(context.Background(), service.Options{Key: key, Rank: j.Rank, World: j.World,
		Dynamic: j.Dynamic, Patience: cmp.Or(j.Patience, patience)}, j.Hosts...)
	if err != nil {
		return err
	}
	defer l.Close()
	if j.State != nil {
		if err := l.Resume(*j.State); err != nil {
			return err
		}
	}
	for l.State().Epoch < j.Epochs {
		for b, err := range l.Batches(context.Background()) {
			if err != nil {
				return err
			}
			st := l.State()
			line, err := json.Marshal(step{st.Epoch, slices.Clone(tensor.Data[int64](b[0])), st})
			if err != nil {
				return err
			}
			b.Close()
			if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
				return err
			}
			time.Sleep(j.Sleep)
		}
	}
	return nil
}

// patience is long for a busy machine, and short for a test.
const patience = 5 * time.Second

// A program is a process of this test binary.
type program struct {
	cmd   *exec.Cmd
	out   *bufio.Reader
	input io.Closer
	addr  string // of a host
	ended bool
}

// start starts a process.
func start(t *testing.T, j job) *program {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, exec.Command(os.Args[0]), string(text), j.Role == "host")
}

// begin starts a command as a process with a job.
func begin(t *testing.T, cmd *exec.Cmd, text string, host bool) *program {
	t.Helper()
	p := &program{cmd: cmd}
	p.cmd.Env = append(os.Environ(), "SERVICE_JOB="+text)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if host {
		line, err := p.out.ReadString('\n')
		if err != nil {
			t.Fatalf("a data host did not start: %v", err)
		}
		p.addr = strings.TrimSpace(line)
	}
	return p
}

func (p *program) kill() {
	if !p.ended {
		p.ended = true
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.input.Close()
	}
}

// hosts starts data hosts, and returns their addresses.
func hosts(t *testing.T, n int, j job) (all []*program, addrs []string) {
	t.Helper()
	j.Role, j.Addr = "host", "127.0.0.1:0"
	for range n {
		h := start(t, j)
		all, addrs = append(all, h), append(addrs, h.addr)
	}
	return all, addrs
}

func dial(t *testing.T, o service.Options, addrs ...string) *service.Loader {
	t.Helper()
	o.Key = key
	o.Patience = cmp.Or(o.Patience, patience)
	l, err := service.Dial(t.Context(), o, addrs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// A got is a batch that a trainer got: the numbers of its samples, and what is random in them.
type got struct {
	samples []int64
	random  []float32
}

func take(b data.Batch) got {
	g := got{slices.Clone(tensor.Data[int64](b[0])), slices.Clone(tensor.Data[float32](b[1]))}
	b.Close()
	return g
}

// epoch reads an epoch, and calls at before each step.
func epoch(t *testing.T, batches iter.Seq2[data.Batch, error], at func(step int)) (all []got) {
	t.Helper()
	for b, err := range batches {
		if err != nil {
			t.Fatal(err)
		}
		if at != nil {
			at(len(all))
		}
		all = append(all, take(b))
	}
	return all
}

// local is what a data.Loader delivers in the same epochs.
func local(t *testing.T, s numbers, epochs int) (all [][]got) {
	l := loader(s, nil)
	defer l.Close()
	for range epochs {
		all = append(all, epoch(t, l.Batches(t.Context()), nil))
	}
	return all
}

func same(a, b []got) bool {
	return slices.EqualFunc(a, b, func(a, b got) bool {
		return slices.Equal(a.samples, b.samples) && slices.Equal(a.random, b.random)
	})
}

// once fails unless the batches have each of n samples once.
func once(t *testing.T, n int, all ...[]got) {
	t.Helper()
	count := make([]int, n)
	for _, batches := range all {
		for _, b := range batches {
			for _, i := range b.samples {
				count[i]++
			}
		}
	}
	lost, duplicates := 0, 0
	for i, c := range count {
		if c != 1 {
			t.Errorf("sample %d came %d times", i, c)
		}
		lost += max(0, 1-c)
		duplicates += max(0, c-1)
	}
	t.Logf("%d samples, lost=%d duplicates=%d", n, lost, duplicates) // make cluster adds them up
}

func TestLoader_DeliversWhatALocalLoaderDoes(t *testing.T) {
	const samples = 42 // the last batch is smaller
	want := local(t, numbers{samples, 0, -1}, 2)
	for n := range 3 {
		t.Run(fmt.Sprintf("%d hosts", n+1), func(t *testing.T) {
			_, addrs := hosts(t, n+1, job{Samples: samples, Seed: 7})
			l := dial(t, service.Options{}, addrs...)
			for e := range 2 {
				if all := epoch(t, l.Batches(t.Context()), nil); !same(all, want[e]) {
					t.Errorf("epoch %d: %v, want %v", e, all, want[e])
				}
			}
			s := l.Stats()
			if s.Samples != 2*samples || s.Batches != 2*l.Len() || len(s.Hosts) != n+1 {
				t.Errorf("%+v", s)
			}
			for _, h := range s.Hosts {
				if h.Batches == 0 || !h.Connected || h.Losses > 0 {
					t.Errorf("a host has nothing to do: %+v", h)
				}
			}
		})
	}
}

// A gated set loads nothing while its gate is held.
type gated struct {
	numbers
	gate *sync.RWMutex
}

func (s gated) Get(ctx context.Context, i int) (data.Sample, error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.numbers.Get(ctx, i)
}

// TestLoader_LaterEpochsBeginWithAllThatIsAhead: only the first batch of all is asked for alone,
// because its size is not known. Workers of a data host were idle at the begin of each epoch.
func TestLoader_LaterEpochsBeginWithAllThatIsAhead(t *testing.T) {
	set := gated{numbers{40, 0, -1}, new(sync.RWMutex)}
	served := data.NewLoader(set, data.Options{BatchSize: 4, Workers: 2})
	defer served.Close()
	h, err := service.Listen(served, "127.0.0.1:0", service.HostOptions{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for name, o := range map[string]service.Options{"fixed": {Prefetch: 4}, "dynamic": {Prefetch: 4, Dynamic: true}} {
		t.Run(name, func(t *testing.T) {
			o.Patience = time.Minute
			l := dial(t, o, h.Addr())
			once(t, 40, epoch(t, l.Batches(t.Context()), nil))
			set.gate.Lock()
			all := make(chan []got, 1)
			go func() { all <- epoch(t, l.Batches(t.Context()), nil) }()
			asked := func() int { return l.Stats().Hosts[0].Asked }
			for begin := time.Now(); asked() < o.Prefetch && time.Since(begin) < 20*time.Second; {
				time.Sleep(time.Millisecond)
			}
			if n := asked(); n != o.Prefetch {
				t.Errorf("%d batches are asked for, not %d", n, o.Prefetch)
			}
			set.gate.Unlock()
			once(t, 40, <-all)
		})
	}
}

// TestLoader_KilledHost kills two of three hosts in the middle of an epoch. What they had not sent
// comes from the third: each sample once, in the order and with the bits of a local loader.
func TestLoader_KilledHost(t *testing.T) {
	t.Run("encrypted", func(t *testing.T) { killedHost(t, false) })
	t.Run("unencrypted", func(t *testing.T) { killedHost(t, true) })
}

func killedHost(t *testing.T, unencrypted bool) {
	const samples = 400
	want := local(t, numbers{samples, 0, -1}, 1)[0]
	all, addrs := hosts(t, 3, job{Samples: samples, Seed: 7, Sleep: time.Millisecond, Unencrypted: unencrypted})
	l := dial(t, service.Options{Unencrypted: unencrypted}, addrs...)
	got := epoch(t, l.Batches(t.Context()), func(step int) {
		switch step {
		case 10:
			all[0].kill()
		case 40:
			all[2].kill()
		}
	})
	once(t, samples, got)
	if !same(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s := l.Stats()
	if s.Hosts[0].Losses == 0 || s.Hosts[2].Losses == 0 || s.Hosts[1].Losses > 0 || s.Hosts[0].Err == nil {
		t.Errorf("%+v", s.Hosts)
	}
}

// TestLoader_HostComesBack kills the only host. The trainer waits, and goes on when it is back at
// its address.
func TestLoader_HostComesBack(t *testing.T) {
	const samples = 80
	want := local(t, numbers{samples, 0, -1}, 1)[0]
	all, addrs := hosts(t, 1, job{Samples: samples, Seed: 7, Sleep: time.Millisecond})
	l := dial(t, service.Options{Patience: time.Minute}, addrs...)
	got := epoch(t, l.Batches(t.Context()), func(step int) {
		if step == 5 {
			all[0].kill()
			start(t, job{Role: "host", Samples: samples, Seed: 7, Addr: addrs[0]})
		}
	})
	if !same(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestLoader_NoHostIsLeft(t *testing.T) {
	all, addrs := hosts(t, 2, job{Samples: 80, Seed: 7})
	l := dial(t, service.Options{Prefetch: 1, Patience: 200 * time.Millisecond}, addrs...)
	steps := 0
	for b, err := range l.Batches(t.Context()) {
		if err == nil {
			if b.Close(); steps == 0 {
				all[0].kill()
				all[1].kill()
			}
			steps++
			continue
		}
		var host *service.HostError
		if !errors.Is(err, service.ErrNoHost) || !errors.As(err, &host) || host.Advice == "" ||
			!strings.Contains(host.Host, addrs[0]) || !strings.Contains(host.Host, addrs[1]) {
			t.Errorf("%v", err)
		}
		return
	}
	t.Errorf("the epoch ended after %d steps", steps)
}

// TestLoader_WorldSharesAnEpoch: batch i goes to trainer i mod World, so each sample comes once.
func TestLoader_WorldSharesAnEpoch(t *testing.T) {
	const samples, world = 90, 3
	want := local(t, numbers{samples, 0, -1}, 1)[0]
	_, addrs := hosts(t, 2, job{Samples: samples, Seed: 7})
	var all [][]got
	for rank := range world {
		l := dial(t, service.Options{Rank: rank, World: world}, addrs...)
		mine := epoch(t, l.Batches(t.Context()), nil)
		if len(mine) != l.Len() {
			t.Errorf("%d batches, and Len is %d", len(mine), l.Len())
		}
		all = append(all, mine)
		for k, b := range mine {
			if !same([]got{b}, want[k*world+rank:k*world+rank+1]) {
				t.Errorf("rank %d, step %d: %v", rank, k, b)
			}
		}
	}
	once(t, samples, all...)
}

// livesOf has trainers share epochs of two data hosts, one trainer after the other, and returns the
// batches of each epoch. Each trainer is killed twice after so many steps, and started again from
// the last state of its ledger. Each data host is killed and started once.
func livesOf(t *testing.T, host job, world, epochs, steps int) [][]got {
	t.Helper()
	const lives = 3
	all, addrs := hosts(t, 2, host)
	host.Role = "host"
	ledger := make([][]got, epochs)
	for rank := range world {
		j := job{Role: "trainer", Hosts: addrs, Rank: rank, World: world, Epochs: epochs, Sleep: time.Millisecond}
		for life := range lives {
			p := start(t, j)
			for n := 0; ; n++ {
				line, err := p.out.ReadString('\n')
				if err != nil { // it is dead, or done; half a line is no step
					break
				}
				var s step
				if err := json.Unmarshal([]byte(line), &s); err != nil {
					t.Fatal(err)
				}
				ledger[s.Epoch] = append(ledger[s.Epoch], got{samples: s.Samples})
				j.State = &s.State
				if n == steps && life < lives-1 {
					p.cmd.Process.Kill() // and read what it has written
				}
			}
			p.kill()
			if life == 0 {
				all[rank].kill()
				host.Addr = addrs[rank]
				all[rank] = start(t, host)
			}
		}
	}
	return ledger
}

// TestTrainer_KilledAndRestarted kills two trainers that share two epochs, several times, and
// starts them again from the last states of their ledgers, while hosts are killed and started.
func TestTrainer_KilledAndRestarted(t *testing.T) {
	const samples, world, epochs = 240, 2, 2
	ledger := livesOf(t, job{Samples: samples, Seed: 7}, world, epochs, 20)
	for _, batches := range ledger {
		once(t, samples, batches)
	}
}

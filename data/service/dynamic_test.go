package service_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A trace is what one trainer has printed: a step for each batch that its loop got.
type trace struct {
	steps  []step
	killed bool // so the last step may or may not be acknowledged
}

// follow reads what a trainer prints until it ends, and calls at after each step.
func follow(p *program, at func(n int)) (t trace) {
	for {
		line, err := p.out.ReadString('\n')
		if err != nil { // half a line is no step
			return t
		}
		var s step
		if json.Unmarshal([]byte(line), &s) != nil {
			return t
		}
		t.steps = append(t.steps, s)
		at(len(t.steps))
	}
}

// audit compares what trainers have got with the ledger of the dealer: each batch of each epoch is
// acknowledged once, by a trainer that has got it, and each sample was used once by steps that were
// acknowledged.
func audit(t *testing.T, file string, batches [][]got, traces []trace) {
	t.Helper()
	number := func(epoch int, samples []int64) int {
		for n, b := range batches[epoch] {
			if fmt.Sprint(b.samples) == fmt.Sprint(samples) {
				return n
			}
		}
		t.Fatalf("epoch %d has no batch %v", epoch, samples)
		return 0
	}
	type batch struct{ epoch, number int }
	sure, perhaps := make(map[batch]int), make(map[batch]int)
	for _, tr := range traces {
		for i, s := range tr.steps {
			b := batch{s.State.Epoch, number(s.State.Epoch, s.Samples)}
			if tr.killed && i == len(tr.steps)-1 {
				perhaps[b]++
			} else {
				sure[b]++
			}
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := make(map[batch]int)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		var b batch
		var who string
		if _, err := fmt.Sscan(line, &b.epoch, &b.number, &who); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		in[b]++
	}
	lost, duplicates := 0, 0
	for e := range batches {
		for n := range batches[e] {
			b := batch{e, n}
			if in[b] != 1 || sure[b] > 1 || sure[b] == 0 && perhaps[b] == 0 {
				t.Errorf("batch %d of epoch %d: %d times in the ledger, %d acknowledged, %d by the dead", n, e, in[b],
					sure[b], perhaps[b])
			}
			lost += max(0, 1-in[b])
			duplicates += max(0, in[b]-1, sure[b]-1)
		}
	}
	t.Logf("%d epochs, lost=%d duplicates=%d", len(batches), lost, duplicates)
}

// trainers starts Dynamic trainers, has each call at after each of its steps, and returns what they
// got when all have ended.
func trainers(t *testing.T, n int, j job, at func(p *program, i, steps int) (killed bool)) []trace {
	t.Helper()
	j.Role, j.Dynamic = "trainer", true
	traces := make([]trace, n)
	var all sync.WaitGroup
	for i := range n {
		p := start(t, j)
		all.Go(func() {
			killed := false
			tr := follow(p, func(steps int) {
				if !killed && at(p, i, steps) {
					killed = true
				}
			})
			if err := p.cmd.Wait(); err != nil && !killed {
				t.Errorf("trainer %d: %v", i, err)
			}
			p.ended, tr.killed = true, killed
			traces[i] = tr
		})
	}
	all.Wait()
	return traces
}

// TestDynamic_KilledTrainers kills two of four trainers by -9 in the middle of the first epoch.
// What they had not acknowledged goes to the others.
func TestDynamic_KilledTrainers(t *testing.T) {
	const samples, epochs = 400, 2
	file := filepath.Join(t.TempDir(), "ledger")
	dealer := start(t, job{Role: "host", Addr: "127.0.0.1:0", Samples: samples, Seed: 7, Ledger: file})
	_, others := hosts(t, 1, job{Samples: samples, Seed: 7})
	traces := trainers(t, 4, job{Hosts: []string{dealer.addr, others[0]}, Epochs: epochs, Sleep: 2 * time.Millisecond},
		func(p *program, i, steps int) bool {
			if i < 2 && steps == 5+3*i {
				p.cmd.Process.Kill()
				return true
			}
			return false
		})
	audit(t, file, local(t, numbers{samples, 0, -1}, epochs), traces)
	for i, tr := range traces {
		if len(tr.steps) == 0 || tr.killed != (i < 2) {
			t.Errorf("trainer %d: %d steps, killed %t", i, len(tr.steps), tr.killed)
		}
	}
}

// TestDynamic_KilledDealer kills the data host that deals by -9, and starts it again at its address
// with its ledger. A data host that has another ledger is refused.
func TestDynamic_KilledDealer(t *testing.T) {
	const samples, epochs = 400, 2
	file := filepath.Join(t.TempDir(), "ledger")
	j := job{Role: "host", Addr: "127.0.0.1:0", Samples: samples, Seed: 7, Ledger: file, Patience: 10 * time.Second}
	dealer := start(t, j)
	_, others := hosts(t, 1, job{Samples: samples, Seed: 7})
	var once sync.Once
	j.Addr = dealer.addr
	traces := trainers(t, 3, job{Hosts: []string{dealer.addr, others[0]}, Epochs: epochs, Sleep: 2 * time.Millisecond,
		Patience: time.Minute},
		func(_ *program, i, steps int) bool {
			if i == 0 && steps == 8 {
				once.Do(func() { dealer.kill(); dealer = start(t, j) })
			}
			return false
		})
	acknowledged := local(t, numbers{samples, 0, -1}, epochs)
	audit(t, file, acknowledged, traces)

	l := dial(t, service.Options{Dynamic: true}, dealer.addr)
	l.Resume(data.State{Seed: 7, Epoch: epochs})
	var last error
	for b, err := range l.Batches(t.Context()) {
		if last = err; err == nil {
			b.Close()
			if l.Stats().Batches == 3 {
				dealer.kill()
				j.Ledger = ""
				dealer = start(t, j)
			}
		}
	}
	var at *service.HostError
	if !errors.Is(last, service.ErrLedger) || !errors.As(last, &at) || at.Host != dealer.addr || at.Advice == "" {
		t.Errorf("%v", last)
	}
}

// TestDynamic_LoopThatIsLeft: what a loop has got and not gone on from is given back, as is what it
// has asked for ahead. A trainer that joins gets what is left.
func TestDynamic_LoopThatIsLeft(t *testing.T) {
	const samples = 80
	file := filepath.Join(t.TempDir(), "ledger")
	h := listen(t, numbers{samples, 0, -1}, service.HostOptions{Ledger: file}, nil)
	a := dial(t, service.Options{Dynamic: true}, h.Addr())
	var first []got
	for b, err := range a.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, take(b))
		if len(first) == 6 {
			break
		}
	}
	if st := a.State(); st.Epoch != 0 || st.Batches != 0 {
		t.Errorf("%+v", st)
	}
	b := dial(t, service.Options{Dynamic: true}, h.Addr()) // while a is connected
	rest := epoch(t, b.Batches(t.Context()), nil)
	once(t, samples, first[:5], rest)
	if s := h.Stats(); s.Dealt != 0 || s.Acknowledged != samples/4 {
		t.Errorf("%+v", s)
	}
	if more := epoch(t, a.Epoch(t.Context(), 0), nil); len(more) != 0 {
		t.Errorf("%d batches of an epoch that is over", len(more))
	}
	if st := a.State(); st.Epoch != 1 {
		t.Errorf("%+v", st)
	}
	// Both read the next epoch at the same time.
	var all sync.WaitGroup
	var mine, theirs []got
	all.Go(func() { mine = epoch(t, a.Epoch(t.Context(), 1), nil) })
	all.Go(func() { theirs = epoch(t, b.Epoch(t.Context(), 1), nil) })
	all.Wait()
	once(t, samples, mine, theirs)
}

// TestDynamic_BadSample: the trainer's loop ends with the error, and the batch stays for others.
func TestDynamic_BadSample(t *testing.T) {
	h := listen(t, numbers{40, 0, 17}, service.HostOptions{}, nil)
	l := dial(t, service.Options{Dynamic: true}, h.Addr())
	var last error
	for b, err := range l.Batches(t.Context()) {
		if last = err; err == nil {
			b.Close()
		}
	}
	var sample *data.SampleError
	if !errors.As(last, &sample) || sample.Index != 17 {
		t.Errorf("%v", last)
	}
	l.Close()
	testutil.Eventually(t, func() bool { return h.Stats().Trainers == 0 }, "the host still has trainers")
	if s := h.Stats(); s.Dealt != 0 || s.Acknowledged >= 10 {
		t.Errorf("%+v", s)
	}
}

func TestDynamic_OptionsAndLedgersThatDoNotFit(t *testing.T) {
	h := listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil)
	for _, o := range []service.Options{{Dynamic: true, World: 2}, {Dynamic: true, Coordinated: true}} {
		o.Key = key
		if _, err := service.Dial(t.Context(), o, h.Addr()); !errors.Is(err, service.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	_, err := service.OpenDataset(t.Context(), service.Options{Key: key, Dynamic: true}, h.Addr())
	if !errors.Is(err, service.ErrOptions) {
		t.Errorf("%v", err)
	}
	l := dial(t, service.Options{Dynamic: true}, h.Addr())
	if err := l.Resume(data.State{Seed: 7, Batches: 3}); !errors.Is(err, data.ErrState) {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "ledger")
	listen(t, numbers{40, 0, -1}, service.HostOptions{Ledger: file}, nil)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		file:                                     "in use by another data host",
		put("text", "hello\n"):                   "not a ledger",
		put("half", "hello"):                     "not a ledger",
		put("damaged", string(text)+"0 one x\n"): "invalid line 2",
		put("beyond", string(text)+"0 100 x\n"):  "invalid line 2",
		filepath.Join(dir, "none", "ledger"):     "no such file",
		put("other", strings.Replace(string(text), `"samples":40`, `"samples":41`, 1)): "another data set",
	} {
		ld := loader(numbers{40, 0, -1}, nil)
		_, err := service.Listen(ld, "127.0.0.1:0", service.HostOptions{Key: key, Ledger: path})
		if !errors.Is(err, service.ErrLedger) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
		ld.Close()
	}
	// Half a line is of an acknowledgement that nobody was told of.
	torn := listen(t, numbers{40, 0, -1}, service.HostOptions{Ledger: put("torn", string(text)+"0 3 A\n0 4")}, nil)
	got := epoch(t, dial(t, service.Options{Dynamic: true}, torn.Addr()).Batches(t.Context()), nil)
	if len(got) != 9 {
		t.Errorf("%d batches are left of 10", len(got))
	}
}

package service_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestLoader_StoppedHost stops one of two hosts with SIGSTOP in the middle of an epoch. It is given
// up after Patience, and what it was asked for comes from the other, once. When it goes on, it is
// connected again.
func TestLoader_StoppedHost(t *testing.T) {
	const samples = 240
	want := local(t, numbers{samples, 0, -1}, 2)
	all, addrs := hosts(t, 2, job{Samples: samples, Seed: 7, Sleep: time.Millisecond})
	l := dial(t, service.Options{Patience: time.Second}, addrs...)
	stop := func(step int) {
		if step == 5 {
			all[1].cmd.Process.Signal(syscall.SIGSTOP)
		}
	}
	if got := epoch(t, l.Batches(t.Context()), stop); !same(got, want[0]) {
		t.Errorf("%v, want %v", got, want[0])
	}
	s := l.Stats().Hosts[1]
	if s.Losses == 0 || s.Err == nil || s.Connected {
		t.Errorf("%+v", s)
	}
	goesOn(t, all[1], l, want[1])
}

// goesOn lets the second data host of l go on, which was stopped, and wants it to have its share of
// the next epoch.
func goesOn(t *testing.T, host *program, l *service.Loader, want []got) {
	t.Helper()
	before := l.Stats().Hosts[1].Batches
	host.cmd.Process.Signal(syscall.SIGCONT)
	testutil.Eventually(t, func() bool { return l.Stats().Hosts[1].Connected }, "the second host is not connected")
	if got := epoch(t, l.Batches(t.Context()), nil); !same(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if after := l.Stats().Hosts[1]; after.Batches <= before {
		t.Errorf("it is connected again and sends nothing: %+v", after)
	}
}

// TestDynamic_StoppedTrainer stops one of three trainers with SIGSTOP. What it had goes to the
// others after Patience of the data host. When it goes on, its acknowledgement is refused, and it
// ends.
func TestDynamic_StoppedTrainer(t *testing.T) {
	const samples = 240
	file := filepath.Join(t.TempDir(), "ledger")
	h := start(t,
		job{Role: "host", Addr: "127.0.0.1:0", Samples: samples, Seed: 7, Ledger: file, Patience: 5 * time.Second})
	j := job{Role: "trainer", Hosts: []string{h.addr}, Epochs: 1, Dynamic: true}
	j.Sleep = time.Second // so the epoch does not end before it is stopped
	slow := start(t, j)
	j.Sleep = 2 * time.Millisecond
	traces := make(chan trace)
	go func() {
		traces <- follow(slow, func(n int) {
			if n == 1 {
				slow.cmd.Process.Signal(syscall.SIGSTOP)
			}
		})
	}()
	all := trainers(t, 2, j, func(*program, int, int) bool { return false })
	slow.cmd.Process.Signal(syscall.SIGCONT)
	tr := <-traces
	tr.killed = true // the batch that it had when it was stopped is acknowledged by another
	if err := slow.cmd.Wait(); err == nil {
		t.Error("the trainer that was stopped has acknowledged what was given to another")
	}
	slow.ended = true
	audit(t, file, local(t, numbers{samples, 0, -1}, 1), append(all, tr))
}

// TestStream_StoppedHost stops one of two hosts with SIGSTOP in the middle of an epoch. The other
// reads its parts again, and each sample comes once. In the next epoch it has parts again.
func TestStream_StoppedHost(t *testing.T) {
	const samples = 400
	want := localStream(t, series{numbers{samples, 0, -1}}, 2, nil)
	all, addrs := hosts(t, 2, job{Samples: samples, Seed: 7, Sleep: time.Millisecond, Stream: true})
	l := dial(t, service.Options{Patience: time.Second}, addrs...)
	got := epoch(t, l.Batches(t.Context()), func(step int) {
		if step == 20 {
			all[1].cmd.Process.Signal(syscall.SIGSTOP)
		}
	})
	once(t, samples, got)
	if !same(got, want[0]) {
		t.Errorf("%v, want %v", got, want[0])
	}
	s := l.Stats().Hosts[1]
	if s.Losses == 0 || s.Batches == 0 || s.Connected {
		t.Errorf("%+v", s)
	}
	goesOn(t, all[1], l, want[1])
}

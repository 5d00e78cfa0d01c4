package service_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data/service"
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
	all[1].cmd.Process.Signal(syscall.SIGCONT)
	for !l.Stats().Hosts[1].Connected {
		time.Sleep(10 * time.Millisecond)
	}
	if got := epoch(t, l.Batches(t.Context()), nil); !same(got, want[1]) {
		t.Errorf("%v, want %v", got, want[1])
	}
	if after := l.Stats().Hosts[1]; after.Batches <= s.Batches {
		t.Errorf("it is connected again and sends nothing: %+v", after)
	}
}

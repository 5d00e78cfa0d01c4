package sys_test

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestSetAffinityConfinesEveryThread(t *testing.T) {
	all := testutil.Value(sys.Affinity())(t)
	last := all[len(all)-1]
	if err := sys.SetAffinity(last); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sys.SetAffinity(all...); err != nil {
			t.Error(err)
		}
		if now := testutil.Value(sys.Affinity())(t); !slices.Equal(now, all) {
			t.Errorf("processors %v after going back to %v", now, all)
		}
	}()
	lists := make(map[string]int)
	for _, task := range testutil.Value(os.ReadDir("/proc/self/task"))(t) {
		status, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		if err != nil {
			continue // the thread has ended
		}
		_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
		list, _, _ = strings.Cut(strings.TrimSpace(list), "\n")
		lists[list]++
	}
	if now := testutil.Value(sys.Affinity())(t); !slices.Equal(now, []int{last}) || len(lists) != 1 {
		t.Errorf("processors %v of this thread, lists of all threads %v, want only %d", now, lists, last)
	}
}

func TestEventfdReadWaitsForAWrite(t *testing.T) {
	f := testutil.Value(sys.Eventfd("test"))(t)
	defer f.Close()
	got := make(chan byte)
	go func() {
		var b [8]byte
		f.Read(b[:])
		got <- b[0]
	}()
	one := [8]byte{3}
	if _, err := f.Write(one[:]); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-got:
		if n != 3 {
			t.Errorf("read %d, want 3", n)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no wake")
	}
}

func TestFutexWakesWhoSleeps(t *testing.T) {
	var w atomic.Uint64
	done := make(chan error)
	go func() {
		for w.Load() == 0 {
			if err := sys.FutexWait(&w, 0, 10*time.Second); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	w.Store(1)
	if err := sys.FutexWake(&w); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("asleep")
	}
	if err := sys.FutexWait(&w, 0, time.Hour); err != nil {
		t.Errorf("a word that changed before the wait: %v", err)
	}
}

func TestMonotonicDoesNotGoBack(t *testing.T) {
	for last, n := sys.Monotonic(), 0; n < 1000; n++ {
		now := sys.Monotonic()
		if now < last {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
}

func TestWordsAreTheSameMemory(t *testing.T) {
	mem := mapped(t, memfile(t, 4096), 4096)
	words := sys.Words(mem[:27])
	if len(words) != 3 {
		t.Fatalf("%d words in 27 bytes", len(words))
	}
	words[1].Store(0x0102030405060708)
	if mem[8] != 8 || mem[15] != 1 {
		t.Errorf("bytes %v", mem[8:16])
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic at an odd address")
		}
	}()
	sys.Words(mem[1:])
}

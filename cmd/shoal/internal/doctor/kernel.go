package doctor

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Kernel reports the kernel's release and features.
type Kernel struct {
	Release string `json:"release"`
	Missing []Call `json:"missing"` // features that Shoal requires and that do not work
	// Doorbell is the time from ringing a doorbell to the wake-up of the waiting goroutine, once
	// both are warm, in nanoseconds. It is 0 if the doorbell does not work.
	Doorbell float64 `json:"doorbell_ns"`
}

// A Call is a system call or kernel feature that does not work here, with the error.
type Call struct {
	Name string `json:"name"`
	Err  string `json:"error"`
}

// oldest is the oldest supported kernel release.
var oldest = [2]int{5, 10}

func probeKernel() Kernel {
	k := Kernel{Missing: []Call{}}
	k.Release, _ = sys.KernelRelease()
	for _, p := range []struct {
		name string
		try  func() error
	}{
		{"memfd_create, fallocate, mmap, seals", tryMemory},
		{"pidfd_open", tryPidfd},
		{"open file description locks", tryLock},
		{"doorbell (datagram on an abstract socket)", func() (err error) { k.Doorbell, err = tryBell(); return err }},
		{"sched_getaffinity", func() error { _, err := sys.Affinity(); return err }},
	} {
		if err := p.try(); err != nil {
			k.Missing = append(k.Missing, Call{p.name, err.Error()})
		}
	}
	return k
}

// tooOld reports whether the release is older than [oldest]. It returns false if the release cannot
// be parsed.
func (k Kernel) tooOld() bool {
	var major, minor int
	if n, _ := fmt.Sscanf(k.Release, "%d.%d", &major, &minor); n != 2 {
		return false
	}
	return major < oldest[0] || major == oldest[0] && minor < oldest[1]
}

// tryMemory creates, seals and maps a memory file in the same way as a domain does. It returns
// the error of the first step that fails.
func tryMemory() error {
	const size = 1 << 16
	f, err := sys.Memfd("shoal-doctor")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := sys.Resize(f, size); err != nil {
		return err
	}
	if err := sys.Commit(f, 0, size); err != nil {
		return err
	}
	if err := sys.Seal(f); err != nil {
		return err
	}
	mem, err := sys.Map(f, size)
	if err != nil {
		return err
	}
	return sys.Unmap(mem)
}

func tryPidfd() error {
	p, err := sys.OpenPidfd(os.Getpid())
	if err != nil {
		return err
	}
	return p.Close()
}

func tryLock() error {
	f, err := sys.Memfd("shoal-doctor")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := sys.LockByte(f, 0); err != nil {
		return err
	}
	return sys.UnlockByte(f, 0)
}

// tryBell rings a doorbell several times while a goroutine waits for it, and returns the
// shortest latency in nanoseconds.
func tryBell() (ns float64, err error) {
	name := "shoal-doctor/" + rand.Text() // unguessable, so that no other process can occupy it
	bell, err := sys.ListenBell(name)
	if err != nil {
		return 0, err
	}
	defer bell.Close()
	ringer, err := sys.NewRinger()
	if err != nil {
		return 0, err
	}
	defer ringer.Close()
	woken := make(chan error, 1)
	go func() {
		for {
			_, err := bell.Wait()
			woken <- err
			if err != nil {
				return
			}
		}
	}()
	addr := sys.NewBellAddr(name)
	for range 20 {
		begin := time.Now()
		if _, err := ringer.Ring(&addr, 0); err != nil {
			return 0, err
		}
		select {
		case err := <-woken:
			if err != nil {
				return 0, err
			}
		case <-time.After(10 * time.Second):
			return 0, fmt.Errorf("doorbell rang but the waiter did not wake")
		}
		if d := float64(time.Since(begin)); ns == 0 || d < ns {
			ns = d
		}
	}
	bell.Close()
	<-woken
	return ns, nil
}

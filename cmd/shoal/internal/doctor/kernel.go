package doctor

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Kernel is what the system can do.
type Kernel struct {
	Release string `json:"release"`
	Missing []Call `json:"missing"` // calls without which Shoal does not work
	// from a ring to the end of the wait for it, once both are warm; 0 where it does not ring
	Doorbell float64 `json:"doorbell_ns"`
}

// A Call is a system call, or something else of the kernel's, that does not work here.
type Call struct {
	Name string `json:"name"`
	Err  string `json:"error"`
}

// oldest is the oldest kernel that works.
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

// tooOld reports whether the release says so; one that cannot be read does not.
func (k Kernel) tooOld() bool {
	var major, minor int
	if n, _ := fmt.Sscanf(k.Release, "%d.%d", &major, &minor); n != 2 {
		return false
	}
	return major < oldest[0] || major == oldest[0] && minor < oldest[1]
}

// tryMemory makes a sealed memory file as a domain does.
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

// tryBell rings a doorbell for which a goroutine waits, some times, and returns the least that it
// took.
func tryBell() (ns float64, err error) {
	name := "shoal-doctor/" + rand.Text() // one that could be guessed could be taken
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
			err := bell.Wait()
			woken <- err
			if err != nil {
				return
			}
		}
	}()
	addr := sys.NewBellAddr(name)
	for range 20 {
		begin := time.Now()
		if err := ringer.Ring(&addr); err != nil {
			return 0, err
		}
		select {
		case err := <-woken:
			if err != nil {
				return 0, err
			}
		case <-time.After(10 * time.Second):
			return 0, fmt.Errorf("rung, and nobody woke")
		}
		if d := float64(time.Since(begin)); ns == 0 || d < ns {
			ns = d
		}
	}
	bell.Close()
	<-woken
	return ns, nil
}

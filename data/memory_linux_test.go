package data_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

// pssOf returns the memory of a process in bytes, pages that n processes map counted 1/n.
func pssOf(t *testing.T, pid int) (n int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Skip("the kernel does not tell: ", err)
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) > 1 && f[0] == "Pss:" {
			n, _ = strconv.Atoi(f[1])
		}
	}
	return n << 10
}

// TestTensorDataset_IsInMemoryOnce passes over a set with several processes. What all of them have
// together does not hold the set more than once; the race detector's own memory is left out of it.
func TestTensorDataset_IsInMemoryOnce(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector keeps memory for each byte that is read")
	}
	const rows, width = 1 << 14, 1 << 10 // 64 MiB
	before := pssOf(t, os.Getpid())
	x, err := tensor.NewShared(tensor.Float32, rows, width)
	if err != nil {
		t.Fatal(err)
	}
	x.Fill(1)
	set := data.NewTensorDataset(x)
	defer set.Close()
	size := x.Nbytes()
	for _, workers := range []int{1, 2, 8} {
		l := data.NewLoader(set, data.Options{BatchSize: 64, Workers: workers, Kind: data.Processes, Persistent: true})
		n := 0
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n += b[0].Dim(0)
		}
		all := pssOf(t, os.Getpid())
		children := shoal.ActiveChildren()
		for _, p := range children {
			all += pssOf(t, p.PID())
		}
		l.Close()
		// Each worker, and this process, may have 15 MiB, and the batches under way theirs.
		limit := before + size + (len(children)+4)*15<<20 + 2*workers*64*width*4
		if n != rows || len(children) != workers || all > limit {
			t.Errorf("%d workers: %d MiB in %d processes for a set of %d MiB, want at most %d", workers,
				all>>20, 1+len(children), size>>20, limit>>20)
		}
	}
}

// TestLoader_AFullDomainIsAnError has a set whose batches do not fit.
func TestLoader_AFullDomainIsAnError(t *testing.T) {
	l := data.NewLoader(huge{}, data.Options{BatchSize: 4, Shared: true})
	defer l.Close()
	for _, err := range l.Batches(t.Context()) {
		if !errors.Is(err, arena.ErrTooLarge) {
			t.Errorf("%v, want ErrTooLarge", err)
		}
	}
}

// huge has samples that are views of one element, and so large that no batch of them has room.
type huge struct{}

func (huge) Len() int { return 4 }
func (huge) Get(context.Context, int) (data.Sample, error) {
	return data.Sample{tensor.New(tensor.Uint8, 1).Expand(1 << 44)}, nil
}

// TestLoader_WorksInEnvironments runs a loader of processes where there is no /dev/shm, and where
// it is as small as in a container: nothing of it is used.
func TestLoader_WorksInEnvironments(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, mount := range map[string]string{
		"no /dev/shm":        "mount -t tmpfs -o size=4k,mode=000 none /dev/shm && mount -o remount,ro /dev/shm",
		"64 MiB of /dev/shm": "mount -t tmpfs -o size=64m none /dev/shm",
	} {
		try := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount)
		if out, err := try.CombinedOutput(); err != nil {
			t.Skipf("no mounts here: %v, %s", err, out)
		}
		c := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--mount",
			"sh", "-c", mount+` && exec "$0" -test.run='^TestLoader_LoadsALargeEpochByProcesses$'`, self)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestLoader_LoadsALargeEpochByProcesses has batches of 32 MiB, four under way.
func TestLoader_LoadsALargeEpochByProcesses(t *testing.T) {
	x, err := tensor.NewShared(tensor.Uint8, 32, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	set := data.NewTensorDataset(x)
	defer set.Close()
	n := 0
	for b, err := range data.NewLoader(set,
		data.Options{BatchSize: 4, Workers: 2, Kind: data.Processes}).Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n += b[0].Dim(0)
	}
	if n != 32 {
		t.Errorf("%d samples", n)
	}
}

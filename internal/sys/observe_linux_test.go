package sys_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/shoal-mp/shoal/internal/sys"
)

func TestPipeBytes_CountsWithoutReading(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	path := fmt.Sprintf("/proc/self/fd/%d", r.Fd())
	for want := range 3 {
		if n, err := sys.PipeBytes(path); err != nil || n != want {
			t.Errorf("%d bytes, %v; want %d", n, err, want)
		}
		if _, err := w.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sys.PipeBytes("/proc/self/fd/9999"); err == nil {
		t.Error("a descriptor that is not open gives no error")
	}
}

func TestUnixSockets_HavePeers(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	if _, err := unix.Write(fds[1], []byte("four")); err != nil {
		t.Fatal(err)
	}
	var inodes [2]uint32
	for i, fd := range fds {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		inodes[i] = uint32(st.Ino)
	}
	all, err := sys.UnixSockets()
	if err != nil {
		t.Skipf("the kernel does not list Unix sockets: %v", err)
	}
	for i, want := range []uint32{4, 0} {
		if s := (sys.UnixSocket{Inode: inodes[i], Peer: inodes[1-i], Unread: want}); !slices.Contains(all, s) {
			t.Errorf("the list of %d sockets lacks %+v", len(all), s)
		}
	}
}

func TestOnCPU_RunsOnThatCPU(t *testing.T) {
	cpus, err := sys.Affinity()
	if err != nil {
		t.Fatal(err)
	}
	for _, cpu := range cpus {
		got := -1
		err := sys.OnCPU(cpu, func() {
			got = lastCPU(t)
		})
		if err != nil || got != cpu {
			t.Errorf("ran on CPU %d, %v; want %d", got, err, cpu)
		}
	}
	if after, err := sys.Affinity(); err != nil || !slices.Equal(after, cpus) {
		t.Errorf("the process may run on %v after it, %v; want %v", after, err, cpus)
	}
}

// lastCPU returns the CPU of the calling thread.
func lastCPU(t *testing.T) int {
	text, err := os.ReadFile("/proc/thread-self/stat")
	if err != nil {
		t.Error(err)
		return -1
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	n, err := strconv.Atoi(strings.Fields(rest)[36])
	if err != nil {
		t.Error(err)
	}
	return n
}

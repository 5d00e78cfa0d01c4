package sys_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
)

// reopened is a memory file whose only description is one that the kernel counts.
func reopened(t *testing.T) *os.File {
	t.Helper()
	first := must(sys.Memfd("watched"))(t)
	defer first.Close()
	if err := sys.Resize(first, 4096); err != nil {
		t.Fatal(err)
	}
	f := must(sys.Reopen(first))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// TestOpenElsewhere sees descriptors and mappings of others, and nobody when they are gone.
func TestOpenElsewhere(t *testing.T) {
	f := reopened(t)
	want := func(open bool, when string) {
		t.Helper()
		if got := must(sys.OpenElsewhere(f))(t); got != open {
			t.Errorf("%s: %v", when, got)
		}
	}
	mine := must(sys.Map(f, 4096))(t)
	defer sys.Unmap(mine)
	want(false, "with a mapping of its own")
	again := must(sys.Reopen(f))(t)
	want(true, "opened again")
	theirs := must(sys.Map(again, 4096))(t)
	again.Close()
	want(true, "mapped without a descriptor")
	if err := sys.Unmap(theirs); err != nil {
		t.Fatal(err)
	}
	want(false, "left alone")
}

// TestOpenWatch tells which file was opened.
func TestOpenWatch(t *testing.T) {
	w := must(sys.NewOpenWatch())(t)
	defer w.Close()
	a, b := reopened(t), reopened(t)
	idA, idB := must(w.Add(a))(t), must(w.Add(b))(t)
	seen := map[int]int{}
	look := func() { w.Opened(func(id int) { seen[id]++ }) }
	look()
	if len(seen) != 0 {
		t.Errorf("before anything was opened: %v", seen)
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), a.Fd()), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	look()
	if seen[idA] != 1 || seen[idB] != 0 {
		t.Errorf("%v, where %d was opened", seen, idA)
	}
	w.Remove(idB)
	again := must(sys.Reopen(b))(t)
	again.Close()
	look()
	if seen[idB] != 0 {
		t.Error("a file that is no longer watched was seen")
	}
}

// TestPair writes from one end to the other.
func TestPair(t *testing.T) {
	ours, theirs, err := sys.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	shared := must(sys.Share(ours))(t)
	shared.Close()
	other := must(sys.SocketConn(theirs))(t)
	defer other.Close()
	if _, err := ours.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := other.Read(b); err != nil || b[0] != 'x' {
		t.Errorf("%q, %v", b, err)
	}
}

// TestFileSystemRoom has no limit for memory files and one for /dev/shm.
func TestFileSystemRoom(t *testing.T) {
	if room := must(sys.FileSystemRoom(reopened(t)))(t); room != -1 {
		t.Errorf("room beside a memory file: %d", room)
	}
	f, err := os.CreateTemp("/dev/shm", "room")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	defer os.Remove(f.Name())
	if room := must(sys.FileSystemRoom(f))(t); room <= 0 {
		t.Errorf("room in /dev/shm: %d", room)
	}
}

// TestCounter is the first word of the memory.
func TestCounter(t *testing.T) {
	mem := make([]byte, 8)
	sys.Counter(mem).Store(-1)
	if mem[0] != 0xff || mem[3] != 0xff || mem[4] != 0 {
		t.Errorf("% x", mem)
	}
}

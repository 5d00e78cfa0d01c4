package sys_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// reopened is a memory file whose only description is one that the kernel counts.
func reopened(t *testing.T) *os.File {
	t.Helper()
	first := testutil.Value(sys.Memfd("watched"))(t)
	defer first.Close()
	if err := sys.Resize(first, 4096); err != nil {
		t.Fatal(err)
	}
	f := testutil.Value(sys.Reopen(first))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// TestOpenElsewhere sees descriptors and mappings of others, and nobody when they are gone.
func TestOpenElsewhere(t *testing.T) {
	f := reopened(t)
	want := func(open bool, when string) {
		t.Helper()
		if got := testutil.Value(sys.OpenElsewhere(f))(t); got != open {
			t.Errorf("%s: %v", when, got)
		}
	}
	mine := testutil.Value(sys.Map(f, 4096))(t)
	defer sys.Unmap(mine)
	want(false, "with a mapping of its own")
	again := testutil.Value(sys.Reopen(f))(t)
	want(true, "opened again")
	theirs := testutil.Value(sys.Map(again, 4096))(t)
	again.Close()
	want(true, "mapped without a descriptor")
	if err := sys.Unmap(theirs); err != nil {
		t.Fatal(err)
	}
	want(false, "left alone")
}

// TestOpenWatch tells which file was opened.
func TestOpenWatch(t *testing.T) {
	w := testutil.Value(sys.NewOpenWatch())(t)
	defer w.Close()
	a, b := reopened(t), reopened(t)
	idA, idB := testutil.Value(w.Add(a))(t), testutil.Value(w.Add(b))(t)
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
	again := testutil.Value(sys.Reopen(b))(t)
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
	shared := testutil.Value(sys.Share(ours))(t)
	shared.Close()
	other := testutil.Value(sys.SocketConn(theirs))(t)
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
	if room := testutil.Value(sys.FileSystemRoom(reopened(t)))(t); room != -1 {
		t.Errorf("room beside a memory file: %d", room)
	}
	f, err := os.CreateTemp("/dev/shm", "room")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	defer os.Remove(f.Name())
	if room := testutil.Value(sys.FileSystemRoom(f))(t); room <= 0 {
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

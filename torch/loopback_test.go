package torch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

var testKey = []byte("loopback key")

// transmit sends v from one end to the other, in this process.
func transmit(t *testing.T, opts Options, v any) (any, error) {
	t.Helper()
	a, b := pair(t, "unix", opts)
	if err := a.Send(testContext(t), v); err != nil {
		return nil, err
	}
	return b.Recv(testContext(t))
}

// TestConn_TensorsCrossBetweenGoPrograms sends tensors through both strategies to this very
// process, which must find its own memory.
func TestConn_TensorsCrossBetweenGoPrograms(t *testing.T) {
	for _, s := range []Strategy{FileDescriptor, FileSystem} {
		opts := Options{AuthKey: testKey, Strategy: s}
		x := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3) // moves to memory that can be mapped
		turned := x.T()
		got, err := transmit(t, opts, python.Tuple{x, turned})
		if err != nil {
			t.Fatal(err)
		}
		y, z := got.(python.Tuple)[0].(*tensor.Tensor), got.(python.Tuple)[1].(*tensor.Tensor)
		if !y.SameStorage(x) || !z.SameStorage(x) || tensor.At[float32](z, 2, 1) != 6 {
			t.Errorf("%v: other memory, or another layout", s)
		}
		CloseAll(got)
		CloseAll([]any{x, turned})
	}
	if err := Trim(); err != nil {
		t.Fatal(err)
	}
	if left := shmFiles(t); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// shmFiles are the names of this process.
func shmFiles(t *testing.T) (mine []string) {
	t.Helper()
	files, err := os.ReadDir(shmDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if o, ok := parseOwner(f.Name()); ok && o.isLocal() && o.pid == os.Getpid() {
			mine = append(mine, f.Name())
		}
	}
	return mine
}

// TestChild_SharedNumbersAreRefusedWithARemedy: a Value, an Array and a Barrier of multiprocessing
// have a descriptor by itself in their pickle.
func TestChild_SharedNumbersAreRefusedWithARemedy(t *testing.T) {
	i := &importer{child: true}
	i.beginMessage()
	_, err := i.Lift(python.Tuple{newInstance(inheritedFD, python.NewDict("fd", int64(3)))})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "share_memory_()") {
		t.Error(err)
	}
}

// TestConn_SendRefuses wants errors that name the value which cannot be sent, and nothing on the
// wire.
func TestConn_SendRefuses(t *testing.T) {
	a, b := pair(t, "unix", Options{AuthKey: testKey})
	ctx := testContext(t)
	inDomain := sharedTensor(t)
	loop := []any{nil}
	loop[0] = loop
	type hidden struct{ x int }
	for name, c := range map[string]struct {
		v    any
		want error
	}{
		"a channel":                  {make(chan int), ErrUnsupported},
		"a function":                 {func() {}, ErrUnsupported},
		"a field that is not public": {hidden{1}, ErrUnsupported},
		"a value in itself":          {loop, ErrUnsupported},
		"an object of Python's":      {object("builtins.range"), ErrUnsupported},
		"a tensor of a domain":       {inDomain, ErrArena},
		"a parameter of ints":        {autograd.NewParam("", tensor.New(tensor.Int64, 2)), ErrUnsupported},
		"text that is not UTF-8":     {"\xff", pickle.ErrValue},
	} {
		if err := a.Send(ctx, python.Tuple{tensor.New(tensor.Float32, 2), c.v}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.Send(ctx, "next"); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Recv(ctx); v != "next" || err != nil {
		t.Errorf("after the refusals: %v, %v", v, err)
	}
}

func sharedTensor(t *testing.T) *tensor.Tensor {
	t.Helper()
	x, err := tensor.NewShared(tensor.Float32, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// TestRegion_PyTorchsMemoryStaysWhereItIs refuses to move memory that PyTorch may have into a
// domain.
func TestRegion_PyTorchsMemoryStaysWhereItIs(t *testing.T) {
	x, err := Zeros(tensor.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Share(); !errors.Is(err, tensor.ErrForeign) {
		t.Errorf("Share: %v", err)
	}
	if !x.IsShared() {
		t.Error("memory that others may map says that it is not shared")
	}
}

// TestOptions_WithoutAKeyNoDescriptors wants the error that says which line of Python is missing.
func TestOptions_WithoutAKeyNoDescriptors(t *testing.T) {
	if _, err := transmit(t, Options{Strategy: FileDescriptor},
		tensor.New(tensor.Float32, 2)); !errors.Is(err, ErrNoKey) {
		t.Errorf("%v", err)
	}
}

// TestConn_DescriptorsTravel sends an open file and a connection.
func TestConn_DescriptorsTravel(t *testing.T) {
	ctx := testContext(t)
	f, err := sys.Memfd("note")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString("written")
	opts := Options{AuthKey: testKey}
	got, err := transmit(t, opts, f)
	if err != nil {
		t.Fatal(err)
	}
	defer CloseAll(got)
	b := make([]byte, 7)
	if _, err := got.(*os.File).ReadAt(b, 0); string(b) != "written" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}

	near, far := pair(t, "unix", opts)
	sent, err := transmit(t, opts, far)
	if err != nil {
		t.Fatal(err)
	}
	c := sent.(*Conn)
	defer c.Close()
	if err := far.Send(ctx, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("a connection that was sent away is still usable here: %v", err)
	}
	if err := near.Send(ctx, "through"); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Recv(ctx); v != "through" || err != nil {
		t.Errorf("%v, %v", v, err)
	}
}

// TestGuard_MakesAFaultAnError takes memory away under a tensor.
func TestGuard_MakesAFaultAnError(t *testing.T) {
	x, err := Options{Strategy: FileSystem}.Empty(tensor.Float32, 4096)
	if err != nil {
		t.Fatal(err)
	}
	r := foreignTensors.LoanOf(x.Storage()).(tenant).region
	if err := os.Truncate(r.path(), 0); err != nil {
		t.Fatal(err)
	}
	var sum float64
	if err := Guard(func() { sum = x.Sum() }); !errors.Is(err, ErrTruncated) {
		t.Errorf("%v, %v", sum, err)
	}
	x.Close() // counts in memory that is no longer there
	if err := Guard(func() {}); err != nil {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Guard took an ordinary panic for itself")
		}
	}()
	Guard(func() { panic("mine") })
}

// TestEmpty_WithoutRoomIsAnError wants an error, not a signal.
func TestEmpty_WithoutRoomIsAnError(t *testing.T) {
	for _, s := range []Strategy{Auto, FileSystem} {
		if x, err := (Options{Strategy: s}).Empty(tensor.Uint8, 1<<44); !errors.Is(err, arena.ErrNoSpace) {
			t.Errorf("%v: %v, %v", s, x, err)
		}
	}
}

// TestRegion_EndsWithItsLastTensor gives back memory whose tensors were forgotten.
func TestRegion_EndsWithItsLastTensor(t *testing.T) {
	id := func() sys.FileID {
		x, err := Zeros(tensor.Float32, 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		return foreignTensors.LoanOf(x.Storage()).(tenant).id
	}()
	testutil.Eventually(t, func() bool {
		runtime.GC()
		regions.mu.Lock()
		defer regions.mu.Unlock()
		return regions.byID[id].tenants == 0
	}, "a forgotten tensor still holds its memory")
}

// endedOwner returns a name whose owner has ended: no process has run since tick 1.
func endedOwner() (string, error) {
	space, err := pidSpace()
	return fmt.Sprintf("%s4194303_1_%s_1", namePrefix, space), err
}

// TestSweep_RemovesWhatTheDeadLeft removes the names that an ended process has left in /dev/shm.
func TestSweep_RemovesWhatTheDeadLeft(t *testing.T) {
	var dead []string
	name := testutil.Value(endedOwner())(t)
	for _, kind := range []string{"", semaphorePrefix} {
		file := shmDir + "/" + kind + name
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(file)
		dead = append(dead, file)
	}
	lock := testutil.Value(NewLock())(t)
	x, err := Options{Strategy: FileSystem}.Empty(tensor.Float32, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	sweepShared()
	for _, file := range dead {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the dead process's name: %v", err)
		}
	}
	if _, err := os.Stat(semaphorePath(lock.(*semaphore).name)); err != nil {
		t.Errorf("a lock of this process: %v", err)
	}
	if err := errors.Join(lock.Close(), lock.Close()); err != nil {
		t.Error(err)
	}
	if len(shmFiles(t)) == 0 {
		t.Error("a living process's name was removed")
	}
}

// TestRegion_ArrivedMemoryIsLetGo closes a tensor of PyTorch's while it is under way back. The
// memory is kept until it was opened. Then it goes, although no tensor is sent or closed after.
func TestRegion_ArrivedMemoryIsLetGo(t *testing.T) {
	first := memfile(t)
	if err := sys.Resize(first, 4096); err != nil {
		t.Fatal(err)
	}
	theirs, err := sys.Reopen(first)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := sys.Identify(theirs)
	if err != nil {
		t.Fatal(err)
	}
	x, err := regions.receive(theirs, 4096, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := foreignTensors.LoanOf(x.Storage()).(tenant).region
	self := newPeer(os.Getuid(), os.Getpid()).process
	regions.expectOpening(r, &self)
	path := fmt.Sprintf("/proc/self/fd/%d", r.file.Fd())
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	known := func() bool {
		regions.mu.Lock()
		defer regions.mu.Unlock()
		return regions.byID[id] == r
	}
	if !known() {
		t.Fatal("memory under way was let go")
	}
	opened, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	testutil.Eventually(t, func() bool { return !known() }, "waited in vain for memory that has arrived to be let go")
}

// TestRegion_WhatIsUnderWayDisplacesNothing has more of PyTorch's memory under way back to it than
// may wait here to be sent again. It does not count against the waiting memory, which stays.
func TestRegion_WhatIsUnderWayDisplacesNothing(t *testing.T) {
	if err := Trim(); err != nil {
		t.Fatal(err)
	}
	ours, err := Empty(tensor.Uint8, 4096)
	if err != nil {
		t.Fatal(err)
	}
	waits := foreignTensors.LoanOf(ours.Storage()).(tenant).region
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	const large = idleBytes + 4096 // a size that no other test uses
	first := memfile(t)
	if err := sys.Resize(first, large); err != nil {
		t.Fatal(err)
	}
	x, err := regions.receive(testutil.Value(sys.Reopen(first))(t), large, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs := foreignTensors.LoanOf(x.Storage()).(tenant).region
	self := newPeer(os.Getuid(), os.Getpid()).process
	regions.expectOpening(theirs, &self)
	path := fmt.Sprintf("/proc/self/fd/%d", theirs.file.Fd())
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	regions.mu.Lock()
	kept := slices.Contains(regions.idle, waits)
	regions.mu.Unlock()
	if !kept {
		t.Error("memory of ours was given up for what is under way")
	}
	opened, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	opened.Close()
}

package sim_test

import (
	"encoding/hex"
	"os"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() {
	roles["import"] = func(d *sim.Driver, _ string) (string, error) {
		h, err := d.MemImport(3)
		if err != nil {
			return "", err
		}
		p, err := mapped(d, h, 2*mib, 0)
		if err != nil {
			return "", err
		}
		s, err := d.StreamCreate(0)
		if err != nil {
			return "", err
		}
		got := make([]byte, 5)
		if err := d.MemcpyDtoHAsync(got, p, s); err != nil {
			return "", err
		}
		if err := d.MemcpyHtoDAsync(p, []byte("world"), s); err != nil {
			return "", err
		}
		return string(got), d.StreamSynchronize(s)
	}
	roles["event"] = func(d *sim.Driver, arg string) (string, error) {
		e, err := d.IPCOpenEventHandle(handle(arg))
		if err != nil {
			return "", err
		}
		s, err := d.StreamCreate(0)
		if err != nil {
			return "", err
		}
		if err := d.StreamWaitEvent(s, e); err != nil {
			return "", err
		}
		return "waited", d.StreamSynchronize(s)
	}
	roles["legacy"] = func(d *sim.Driver, _ string) (string, error) {
		p, err := d.MemAlloc(4096)
		if err != nil {
			return "", err
		}
		h, err := d.IPCGetMemHandle(p)
		return hex.EncodeToString(h[:]), err
	}
}

func handle(text string) (h cudriver.IPCHandle) {
	hex.Decode(h[:], []byte(text))
	return h
}

// Memory lives while a process has a handle, a descriptor or a mapping of it. A killed process has
// none.
func TestVirtualMemory_OutlivesItsMaker(t *testing.T) {
	devices, d := open(t, 1)
	h, err := d.MemCreate(2*mib, cudriver.Pinned(0, true))
	testutil.NoError(t, err)
	p, err := mapped(d, h, 2*mib, 0)
	testutil.NoError(t, err)
	s := stream(t, d)
	testutil.NoError(t, d.MemcpyHtoDAsync(p, []byte("hello"), s))
	testutil.NoError(t, d.StreamSynchronize(s))
	fd, err := d.MemExport(h)
	testutil.NoError(t, err)
	f := os.NewFile(uintptr(fd), "memory")
	same, err := d.MemImport(fd)
	testutil.NoError(t, err)
	_, err = d.MemExport(same)
	fails(t, cudriver.ErrorInvalidValue, err) // what was imported
	testutil.NoError(t, d.MemRelease(same))
	said, c := child(t, devices, "import", "", true, f)
	if said != "hello <nil>" {
		t.Fatalf("the other process says %q", said)
	}
	got := make([]byte, 5)
	testutil.NoError(t, d.MemcpyDtoHAsync(got, p, s))
	testutil.NoError(t, d.StreamSynchronize(s))
	if string(got) != "world" {
		t.Errorf("it wrote %q", got)
	}
	testutil.NoError(t, f.Close())
	testutil.NoError(t, d.MemRelease(h))
	testutil.NoError(t, d.MemUnmap(p, 2*mib))
	used(t, devices, 2*mib)
	testutil.NoError(t, c.Process.Kill())
	c.Wait()
	used(t, devices, 0)

	null, err := os.Open("/dev/null")
	testutil.NoError(t, err)
	defer null.Close()
	_, err = d.MemImport(int(null.Fd()))
	fails(t, cudriver.ErrorUnknown, err)
}

func TestLegacyMemory_StaysWhileItIsOpen(t *testing.T) {
	devices, d := open(t, 1)
	p, err := d.MemAlloc(4096)
	testutil.NoError(t, err)
	h, err := d.IPCGetMemHandle(p + 10)
	testutil.NoError(t, err)
	_, err = d.IPCOpenMemHandle(h)
	fails(t, cudriver.ErrorInvalidContext, err) // in the process that made it
	_, err = d.IPCOpenMemHandle(cudriver.IPCHandle{1})
	fails(t, cudriver.ErrorInvalidValue, err)

	said, c := child(t, devices, "legacy", "", true)
	theirs := handle(said[:128])
	q, err := d.IPCOpenMemHandle(theirs)
	testutil.NoError(t, err)
	again, err := d.IPCOpenMemHandle(theirs)
	if again != q || err != nil {
		t.Errorf("opened again it is at %#x, not %#x, %v", again, q, err)
	}
	testutil.NoError(t, d.IPCCloseMemHandle(q))
	fails(t, cudriver.ErrorInvalidValue, d.IPCCloseMemHandle(q+1)) // not what was returned
	s := stream(t, d)
	testutil.NoError(t, d.MemsetD8Async(q, 1, 1, s)) // open once
	testutil.NoError(t, d.StreamSynchronize(s))
	testutil.NoError(t, c.Process.Kill())
	c.Wait()
	got := make([]byte, 1)
	testutil.NoError(t, d.MemcpyDtoHAsync(got, q, s))
	testutil.NoError(t, d.StreamSynchronize(s))
	if got[0] != 1 {
		t.Errorf("when its maker is dead it reads %d", got[0])
	}
	testutil.NoError(t, d.MemFree(p))
	used(t, devices, 4096)
	testutil.NoError(t, d.IPCCloseMemHandle(q))
	used(t, devices, 0)
	_, err = d.IPCOpenMemHandle(theirs)
	fails(t, cudriver.ErrorInvalidHandle, err) // the process that made it has died
}

func TestLegacyMemory_IsClosedAsOftenAsOpened(t *testing.T) {
	devices, d := open(t, 1)
	said, c := child(t, devices, "legacy", "", true)
	theirs := handle(said[:128])
	for range 2 {
		p, err := d.IPCOpenMemHandle(theirs)
		testutil.NoError(t, err)
		testutil.NoError(t, d.IPCCloseMemHandle(p))
		fails(t, cudriver.ErrorInvalidValue, d.IPCCloseMemHandle(p))
	}
	testutil.NoError(t, c.Process.Kill())
	c.Wait()
	_, err := d.IPCOpenMemHandle(theirs)
	fails(t, cudriver.ErrorInvalidHandle, err) // who made it has died
}

func TestEvent_OrdersTheWorkOfTwoProcesses(t *testing.T) {
	devices, d := open(t, 1)
	e, err := d.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming)
	testutil.NoError(t, err)
	h, err := d.IPCGetEventHandle(e)
	testutil.NoError(t, err)
	_, err = d.IPCOpenEventHandle(h)
	fails(t, cudriver.ErrorInvalidContext, err)
	s := stream(t, d)
	d.Hold(true)
	time.AfterFunc(100*time.Millisecond, func() { d.Hold(false) }) // in most runs while the other one waits
	testutil.NoError(t, d.EventRecord(e, s))
	if said, _ := child(t, devices, "event", hex.EncodeToString(h[:]), false); said != "waited <nil>" {
		t.Errorf("the other process says %q", said)
	}
	testutil.NoError(t, d.EventQuery(e)) // it had come to pass before that one went on
	testutil.NoError(t, d.EventDestroy(e))
	if said, _ := child(t, devices, "event", hex.EncodeToString(h[:]),
		false); said != " cuIpcOpenEventHandle: CUDA_ERROR_INVALID_HANDLE (400)" {
		t.Errorf("of an event that is gone the other process says %q", said)
	}
}

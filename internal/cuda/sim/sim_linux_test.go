package sim_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/test/testutil"
)

const (
	mib  = 1 << 20
	size = 64 * mib
)

// roles are what this program does as a child: it says one line.
var roles = map[string]func(d *sim.Driver, arg string) (string, error){}

func TestMain(m *testing.M) {
	role := os.Getenv("SIM_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	d := sim.New(strings.Split(os.Getenv("SIM_DEVICES"), ","))
	runtime.LockOSThread()
	_, err := enter(d)
	said := ""
	if err == nil {
		said, err = roles[role](d, os.Getenv("SIM_ARG"))
	}
	fmt.Println(said, err)
	if os.Getenv("SIM_STAY") != "" {
		os.Stdin.Read(make([]byte, 1))
	}
}

// enter makes the first device's context current.
func enter(d *sim.Driver) (cudriver.Context, error) {
	if err := d.Init(); err != nil {
		return 0, err
	}
	c, err := d.PrimaryCtxRetain(0)
	if err != nil {
		return 0, err
	}
	return c, d.CtxSetCurrent(c)
}

// fails checks the result of a call that breaks a rule.
func fails(t *testing.T, want cudriver.Result, err error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

// open makes devices and enters the first, on a thread that is the test's.
func open(t *testing.T, n int) (*sim.Devices, *sim.Driver) {
	t.Helper()
	devices, err := sim.Create(n, size)
	testutil.NoError(t, err)
	t.Cleanup(func() { devices.Close() })
	d := sim.New(devices.Paths())
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	_, err = enter(d)
	testutil.NoError(t, err)
	return devices, d
}

// child runs a role in another process, which ends when its standard input does, if it stays.
func child(t *testing.T, devices *sim.Devices, role, arg string, stay bool, files ...*os.File) (said string,
	c *exec.Cmd) {
	t.Helper()
	c = exec.CommandContext(t.Context(), "/proc/self/exe")
	c.Env = append(os.Environ(), "SIM_ROLE="+role, "SIM_ARG="+arg, "SIM_DEVICES="+strings.Join(devices.Paths(), ","))
	if stay {
		c.Env = append(c.Env, "SIM_STAY=1")
	}
	c.ExtraFiles = files
	in, err := c.StdinPipe()
	testutil.NoError(t, err)
	t.Cleanup(func() { in.Close(); c.Wait() })
	out, err := c.StdoutPipe()
	testutil.NoError(t, err)
	testutil.NoError(t, c.Start())
	var line strings.Builder
	for b := make([]byte, 1); ; {
		if _, err := out.Read(b); err != nil || b[0] == '\n' {
			return line.String(), c
		}
		line.Write(b)
	}
}

// mapped maps memory for all devices given.
func mapped(d *sim.Driver, h cudriver.MemHandle, n uint64, devices ...cudriver.Device) (cudriver.Ptr, error) {
	p, err := d.MemAddressReserve(n, 0)
	if err == nil {
		err = d.MemMap(p, n, h)
	}
	var access []cudriver.AccessDesc
	for _, id := range devices {
		access = append(access, cudriver.Access(id, cudriver.AccessReadWrite))
	}
	if err == nil && access != nil {
		err = d.MemSetAccess(p, n, access)
	}
	return p, err
}

func stream(t *testing.T, d *sim.Driver) cudriver.Stream {
	t.Helper()
	s, err := d.StreamCreate(cudriver.StreamNonBlocking)
	testutil.NoError(t, err)
	return s
}

func used(t *testing.T, devices *sim.Devices, want int64) {
	t.Helper()
	if n, err := devices.Used(0); n != want || err != nil {
		t.Errorf("%d bytes of the device are used, %v; want %d", n, err, want)
	}
}

func TestDriver_CallsNeedWhatCUDANeeds(t *testing.T) {
	devices, err := sim.Create(1, size)
	testutil.NoError(t, err)
	defer devices.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := sim.New(devices.Paths())
	_, err = d.DeviceCount()
	fails(t, cudriver.ErrorNotInitialized, err)
	testutil.NoError(t, d.Init())
	_, err = d.DeviceGet(1)
	fails(t, cudriver.ErrorInvalidDevice, err)
	_, err = d.MemAlloc(1)
	fails(t, cudriver.ErrorInvalidContext, err)
	c, err := d.PrimaryCtxRetain(0)
	testutil.NoError(t, err)
	_, err = d.MemAlloc(1)
	fails(t, cudriver.ErrorInvalidContext, err) // retained is not current
	testutil.NoError(t, d.CtxSetCurrent(c))
	_, err = d.MemAlloc(1)
	testutil.NoError(t, err)
	other := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		_, err := d.MemAlloc(1)
		other <- err
	}()
	fails(t, cudriver.ErrorInvalidContext, <-other) // current is of one thread
	testutil.NoError(t, d.PrimaryCtxRelease(0))
	_, err = d.MemAlloc(1)
	fails(t, cudriver.ErrorContextIsDestroyed, err)
	fails(t, cudriver.ErrorNoDevice, sim.New([]string{"/dev/null"}).Init())
	fails(t, cudriver.ErrorNoDevice, sim.New(nil).Init())
}

func TestLegacyMemory_HasItsRules(t *testing.T) {
	devices, d := open(t, 1)
	p, err := d.MemAlloc(5000)
	testutil.NoError(t, err)
	used(t, devices, 8192)
	fails(t, cudriver.ErrorInvalidValue, d.MemFree(p+1))
	base, n, err := d.MemGetAddressRange(p + 4999)
	if base != p || n != 8192 || err != nil {
		t.Errorf("the allocation is %d bytes at %#x, %v", n, base, err)
	}
	s := stream(t, d)
	testutil.NoError(t, d.MemsetD16Async(p, 0x4241, 4096, s))
	got := make([]byte, 8192)
	testutil.NoError(t, d.MemcpyDtoHAsync(got, p, s))
	testutil.NoError(t, d.StreamSynchronize(s))
	if string(got) != strings.Repeat("AB", 4096) {
		t.Errorf("%.20q…", got)
	}
	testutil.NoError(t, d.MemFree(p))
	fails(t, cudriver.ErrorInvalidValue, d.MemFree(p))
	used(t, devices, 0)
	_, err = d.MemAlloc(size + 1)
	fails(t, cudriver.ErrorOutOfMemory, err)
}

func TestVirtualMemory_HasItsRules(t *testing.T) {
	devices, d := open(t, 2)
	prop := cudriver.Pinned(0, true)
	_, err := d.MemCreate(mib, prop)
	fails(t, cudriver.ErrorInvalidValue, err) // no multiple of the granularity
	_, err = d.MemCreate(2*mib, cudriver.Pinned(2, true))
	fails(t, cudriver.ErrorInvalidDevice, err)
	_, err = d.MemCreate(2*size, prop)
	fails(t, cudriver.ErrorOutOfMemory, err)
	private, err := d.MemCreate(2*mib, cudriver.Pinned(0, false))
	testutil.NoError(t, err)
	_, err = d.MemExport(private)
	fails(t, cudriver.ErrorInvalidValue, err) // nobody asked for it
	testutil.NoError(t, d.MemRelease(private))
	fails(t, cudriver.ErrorInvalidValue, d.MemRelease(private))

	h, err := d.MemCreate(4*mib, prop)
	testutil.NoError(t, err)
	fails(t, cudriver.ErrorInvalidValue, d.MemMap(1<<40, 4*mib, h)) // not reserved
	p, err := mapped(d, h, 4*mib)
	testutil.NoError(t, err)
	fails(t, cudriver.ErrorAlreadyMapped, d.MemMap(p, 4*mib, h))
	fails(t, cudriver.ErrorInvalidValue, d.MemUnmap(p, 2*mib)) // a part
	fails(t, cudriver.ErrorInvalidValue, d.MemAddressFree(p, 4*mib))
	testutil.NoError(t, d.MemRelease(h))
	used(t, devices, 4*mib) // the mapping keeps it
	_, err = d.IPCGetMemHandle(p)
	fails(t, cudriver.ErrorInvalidValue, err)
	testutil.NoError(t, d.MemUnmap(p, 4*mib))
	testutil.NoError(t, d.MemAddressFree(p, 4*mib))
	used(t, devices, 0)
	if n := d.Open(); n.Handles+n.Mappings+n.Reservations != 0 {
		t.Errorf("left: %+v", n)
	}
}

// A fault costs the context, which is lost for all that comes.
func TestContext_IsLostByAnIllegalAccess(t *testing.T) {
	for name, access := range map[string]func(d *sim.Driver, h cudriver.MemHandle, s cudriver.Stream) error{
		"no access set": func(d *sim.Driver, h cudriver.MemHandle, s cudriver.Stream) error {
			p, err := mapped(d, h, 2*mib)
			return errors.Join(err, d.MemsetD8Async(p, 1, 1, s))
		},
		"write through a mapping to read": func(d *sim.Driver, h cudriver.MemHandle, s cudriver.Stream) error {
			p, err := mapped(d, h, 2*mib)
			return errors.Join(err, d.MemSetAccess(p, 2*mib,
				[]cudriver.AccessDesc{cudriver.Access(0, cudriver.AccessRead)}),
				d.MemcpyDtoHAsync(make([]byte, 1), p, s), d.StreamSynchronize(s), d.MemsetD8Async(p, 1, 1, s))
		},
		"beyond the end": func(d *sim.Driver, h cudriver.MemHandle, s cudriver.Stream) error {
			p, err := mapped(d, h, 2*mib, 0)
			return errors.Join(err, d.MemsetD8Async(p+2*mib-1, 1, 2, s))
		},
		"unmapped while work is queued": func(d *sim.Driver, h cudriver.MemHandle, s cudriver.Stream) error {
			d.Hold(true)
			defer d.Hold(false)
			p, err := mapped(d, h, 2*mib, 0)
			return errors.Join(err, d.MemsetD8Async(p, 1, 1, s), d.MemsetD8Async(p, 1, 1, s), d.MemUnmap(p, 2*mib))
		},
		"of another device": func(d *sim.Driver, h cudriver.MemHandle, s cudriver.Stream) error {
			p, err := mapped(d, h, 2*mib, 1)
			return errors.Join(err, d.MemsetD8Async(p, 1, 1, s))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := open(t, 2)
			h, err := d.MemCreate(2*mib, cudriver.Pinned(0, true))
			testutil.NoError(t, err)
			s := stream(t, d)
			testutil.NoError(t, access(d, h, s))
			fails(t, cudriver.ErrorIllegalAddress, d.StreamSynchronize(s))
			_, err = d.MemAlloc(1)
			fails(t, cudriver.ErrorIllegalAddress, err)
		})
	}
}

func TestStream_WorkIsQueuedAndEventsOrderIt(t *testing.T) {
	_, d := open(t, 1)
	p, err := d.MemAlloc(4096)
	testutil.NoError(t, err)
	first, second := stream(t, d), stream(t, d)
	e, err := d.EventCreate(cudriver.EventDisableTiming)
	testutil.NoError(t, err)
	testutil.NoError(t, d.EventQuery(e)) // nothing was recorded
	got := make([]byte, 4096)
	testutil.NoError(t, d.MemHostRegister(got, 0))
	d.Hold(true)
	testutil.NoError(t, d.MemsetD8Async(p, 'a', 4096, first))
	testutil.NoError(t, d.EventRecord(e, first))
	fails(t, cudriver.ErrorNotReady, d.StreamQuery(first))
	fails(t, cudriver.ErrorNotReady, d.EventQuery(e))
	testutil.NoError(t, d.StreamWaitEvent(second, e))
	testutil.NoError(t, d.MemcpyDtoHAsync(got[:1], p, second))
	d.Hold(false)
	testutil.NoError(t, d.StreamSynchronize(second))
	if got[0] != 'a' {
		t.Errorf("%q was read before it was written", got[0])
	}
	testutil.NoError(t, d.MemHostUnregister(got))
	testutil.NoError(t, d.EventSynchronize(e))
	testutil.NoError(t, d.EventDestroy(e))
	fails(t, cudriver.ErrorInvalidHandle, d.EventRecord(e, first))
	_, err = d.EventCreate(cudriver.EventInterprocess)
	fails(t, cudriver.ErrorInvalidValue, err) // with times
	testutil.NoError(t, d.StreamDestroy(first))
	fails(t, cudriver.ErrorInvalidHandle, d.MemsetD8Async(p, 1, 1, first))
}

// What CUDA may do only when the device has done what is queued, it does then here.
func TestDriver_SomeCallsWaitForTheDevice(t *testing.T) {
	for name, call := range map[string]func(d *sim.Driver, p cudriver.Ptr, s cudriver.Stream) error{
		"to pages of the host": func(d *sim.Driver, p cudriver.Ptr, s cudriver.Stream) error {
			return d.MemcpyDtoHAsync(make([]byte, 8), p, s)
		},
		"from pages of the host": func(d *sim.Driver, p cudriver.Ptr, s cudriver.Stream) error {
			return d.MemcpyHtoDAsync(p+8, make([]byte, 8), s)
		},
		"code": func(d *sim.Driver, _ cudriver.Ptr, _ cudriver.Stream) error {
			_, err := d.ModuleLoadData([]byte(counting + "\x00"))
			return err
		},
		"access": func(d *sim.Driver, _ cudriver.Ptr, _ cudriver.Stream) error {
			h, err := d.MemCreate(2*mib, cudriver.Pinned(0, true))
			if err != nil {
				return err
			}
			_, err = mapped(d, h, 2*mib, 0)
			return err
		},
		"unmapping": func(d *sim.Driver, _ cudriver.Ptr, _ cudriver.Stream) error {
			h, err := d.MemCreate(2*mib, cudriver.Pinned(0, true))
			if err != nil {
				return err
			}
			p, err := mapped(d, h, 2*mib)
			return errors.Join(err, d.MemUnmap(p, 2*mib))
		},
		"memory": func(d *sim.Driver, _ cudriver.Ptr, _ cudriver.Stream) error {
			p, err := d.MemAlloc(4096)
			return errors.Join(err, d.MemFree(p))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := open(t, 1)
			p, err := d.MemAlloc(4096)
			testutil.NoError(t, err)
			waits, other := stream(t, d), stream(t, d)
			testutil.NoError(t, d.MemsetD32Async(p, 0, 8, other))
			testutil.NoError(t, d.StreamSynchronize(other))
			testutil.NoError(t, d.StreamWaitValue32(waits, p, 1))
			ctx, err := d.CtxGetCurrent()
			testutil.NoError(t, err)
			wrote := make(chan error, 1)
			go func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				wrote <- errors.Join(d.CtxSetCurrent(ctx), d.StreamWriteValue32(other, p, 1))
			}()
			testutil.NoError(t, call(d, p, waits))
			testutil.NoError(t, d.StreamQuery(waits))
			testutil.NoError(t, <-wrote)
			testutil.NoError(t, d.StreamSynchronize(other))
		})
	}
}

const counting = `
.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 p)
{
	.reg .b64 %d<2>;
	ld.param.u64 %d1, [p];
	red.global.add.u32 [%d1], 1;
	ret;
}`

func TestKernel_IsFoundInItsTextAndRuns(t *testing.T) {
	_, d := open(t, 1)
	_, err := d.ModuleLoadData([]byte(counting))
	fails(t, cudriver.ErrorInvalidImage, err)
	_, err = d.ModuleLoadData([]byte(strings.ReplaceAll(counting, "red", "blue") + "\x00"))
	fails(t, cudriver.ErrorInvalidPTX, err)
	m, err := d.ModuleLoadData([]byte(counting + "\x00"))
	testutil.NoError(t, err)
	_, err = d.ModuleGetFunction(m, "uncount")
	fails(t, cudriver.ErrorNotFound, err)
	f, err := d.ModuleGetFunction(m, "count")
	testutil.NoError(t, err)
	p, err := d.MemAlloc(4)
	testutil.NoError(t, err)
	s := stream(t, d)
	testutil.NoError(t, d.MemsetD32Async(p, 0, 1, s))
	at := func(p cudriver.Ptr) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(p)) }
	grid, block := [3]uint32{3, 1, 1}, [3]uint32{4, 2, 1}
	fails(t, cudriver.ErrorInvalidValue, d.LaunchKernel(f, grid, [3]uint32{2048, 1, 1}, 0, s, at(p)))
	fails(t, cudriver.ErrorInvalidValue, d.LaunchKernel(f, grid, block, 0, s, at(p)[:4]))
	// memory that the text does not declare
	fails(t, cudriver.ErrorInvalidValue, d.LaunchKernel(f, grid, block, 16, s, at(p)))
	fails(t, cudriver.ErrorInvalidHandle, d.LaunchKernel(f+1, grid, block, 0, s, at(p)))
	testutil.NoError(t, d.LaunchKernel(f, grid, block, 0, s, at(p)))
	got := make([]byte, 4)
	testutil.NoError(t, d.MemcpyDtoHAsync(got, p, s))
	testutil.NoError(t, d.StreamSynchronize(s))
	if got[0] != 24 {
		t.Errorf("%d threads, want 24", got[0])
	}
	testutil.NoError(t, d.ModuleUnload(m))
	fails(t, cudriver.ErrorInvalidHandle, d.LaunchKernel(f, grid, block, 0, s, at(p)))
}

func TestContext_IsLostByAKernelThatStrays(t *testing.T) {
	for want, offset := range map[cudriver.Result]cudriver.Ptr{cudriver.ErrorIllegalAddress: 4096,
		cudriver.ErrorMisalignedAddress: 2} {
		_, d := open(t, 1)
		m, err := d.ModuleLoadData([]byte(counting + "\x00"))
		testutil.NoError(t, err)
		f, err := d.ModuleGetFunction(m, "count")
		testutil.NoError(t, err)
		p, err := d.MemAlloc(4096)
		testutil.NoError(t, err)
		s, one := stream(t, d), [3]uint32{1, 1, 1}
		testutil.NoError(t, d.LaunchKernel(f, one, one, 0, s, binary.LittleEndian.AppendUint64(nil, uint64(p+offset))))
		fails(t, want, d.StreamSynchronize(s))
	}
}

func TestDriver_FailsWhereItIsTold(t *testing.T) {
	_, d := open(t, 1)
	d.Fail("cuMemAlloc", 2, cudriver.ErrorOutOfMemory)
	_, err := d.MemAlloc(1)
	testutil.NoError(t, err)
	_, err = d.MemAlloc(1)
	fails(t, cudriver.ErrorOutOfMemory, err)
	_, err = d.MemAlloc(1)
	testutil.NoError(t, err)
}

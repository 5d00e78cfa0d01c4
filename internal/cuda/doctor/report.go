package doctor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Report describes the devices that this process can use. [Examine] makes it. Its JSON form
// is for programs.
type Report struct {
	Missing   string         `json:"missing,omitempty"`   // error if there are no devices
	Simulated bool           `json:"simulated,omitempty"` // devices are files: cudriver.SimulateKey
	Driver    string         `json:"driver,omitempty"`    // CUDA version of the driver
	Visible   string         `json:"visible,omitempty"`   // value of CUDA_VISIBLE_DEVICES, if set
	Devices   []DeviceReport `json:"devices,omitempty"`
	Advice    []string       `json:"advice,omitempty"` // remedies for the user
}

// A DeviceReport describes one device.
type DeviceReport struct {
	Name     string `json:"name"` // in PyTorch's notation
	Model    string `json:"model"`
	UUID     string `json:"uuid"`
	Compute  string `json:"compute"`
	Free     int    `json:"free"` // bytes
	Total    int    `json:"total"`
	Peers    []int  `json:"peers"`              // devices with memory that it can access
	Alone    bool   `json:"alone,omitempty"`    // its compute mode allows at most one process
	Unusable string `json:"unusable,omitempty"` // error of using it; no Ways were tried then
	Ways     []Way  `json:"ways"`
}

// A Way is the result of trying one mechanism for sharing between processes on a device.
type Way struct {
	Name string `json:"name"`
	Err  string `json:"error,omitempty"`   // the driver's error; empty on success
	Lost string `json:"without,omitempty"` // features that are lost or degraded by Err
}

// A device is a device under examination.
type device struct {
	driver  cudriver.Driver
	id      cudriver.Device
	ordinal int
}

// The sharing mechanisms, in the order of the report. Each must be tried in the device's context,
// with its own stream.
var ways = []struct {
	name, lost string
	try        func(d device, s cudriver.Stream) error
}{
	{"memory by descriptors (how tensors are shared)",
		"tensors of this device cannot be sent to other processes", tryDescriptors},
	{"counters in shared host memory (a sender need not wait)", "Put waits for the device", tryNumbers},
	{"legacy memory handles (PyTorch, CuPy)", "tensors cannot be shared with PyTorch and CuPy", tryLegacy},
	{"interprocess events (PyTorch)", "sending to PyTorch waits for the device", tryEvents},
	{"registered host memory (pinned batches)", "memory cannot be pinned, so copies block the host", tryHost},
}

// Examine examines the driver and all devices, and tries each sharing mechanism on each device.
// Errors are part of the report. Examine retains the devices' primary contexts and releases
// them before it returns.
func Examine() *Report {
	driver, err := cudriver.Open()
	if err != nil {
		return reportMissing(err)
	}
	return examineDriver(driver)
}

func reportMissing(err error) *Report { return &Report{Missing: err.Error(), Advice: advise(err)} }

func examineDriver(driver cudriver.Driver) *Report {
	ids, err := cudriver.Devices(driver)
	if err != nil {
		return reportMissing(err)
	}
	_, simulated := cudriver.Simulated()
	r := &Report{Simulated: simulated, Driver: "unknown", Visible: os.Getenv("CUDA_VISIBLE_DEVICES")}
	if v, err := driver.DriverVersion(); err == nil {
		r.Driver = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	for i, id := range ids {
		said, unusable := device{driver, id, i}.examineDevice(ids)
		r.Devices, r.Advice = append(r.Devices, said), append(r.Advice, said.advise(unusable)...)
	}
	return r
}

// examineDevice describes the device and tries the sharing mechanisms. all lists the visible
// devices. unusable is the error that made the device unusable, or nil; r.Unusable is its text.
func (d device) examineDevice(all []cudriver.Device) (r DeviceReport, unusable error) {
	r = d.describe(all)
	unusable = d.withStream(func(s cudriver.Stream) error {
		free, total, err := d.driver.MemGetInfo()
		if err != nil {
			return err
		}
		r.Free, r.Total = int(free), int(total)
		for _, w := range ways {
			way := Way{Name: w.name}
			if err := w.try(d, s); err != nil {
				way.Err, way.Lost = err.Error(), w.lost
			}
			r.Ways = append(r.Ways, way)
		}
		return nil
	})
	if unusable != nil {
		r.Unusable = unusable.Error()
	}
	return r, unusable
}

// describe returns the properties of a device that need no context. all lists the visible devices,
// for the access between them. A property that cannot be read is left at a default.
func (d device) describe(all []cudriver.Device) DeviceReport {
	r := DeviceReport{Name: fmt.Sprintf("cuda:%d", d.ordinal), Model: "unknown", Peers: []int{}, Ways: []Way{}}
	if uuid, err := d.driver.DeviceUUID(d.id); err == nil {
		// nvidia-smi's form
		r.UUID = fmt.Sprintf("%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	}
	if name, err := d.driver.DeviceName(d.id); err == nil {
		r.Model = name
	}
	major, _ := d.driver.DeviceAttribute(cudriver.AttributeComputeMajor, d.id)
	minor, _ := d.driver.DeviceAttribute(cudriver.AttributeComputeMinor, d.id)
	r.Compute = fmt.Sprintf("%d.%d", major, minor)
	mode, _ := d.driver.DeviceAttribute(cudriver.AttributeComputeMode, d.id)
	r.Alone = mode != 0
	for i, other := range all {
		if can, err := d.driver.DeviceCanAccessPeer(d.id, other); err == nil && can {
			r.Peers = append(r.Peers, i)
		}
	}
	return r
}

// withStream runs calls with a new stream, on an OS thread on which the device's primary context is
// current. It destroys the stream and releases the context before it returns. The error joins the
// errors of calls and of the driver.
func (d device) withStream(calls func(s cudriver.Stream) error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, err := d.driver.PrimaryCtxRetain(d.id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.driver.PrimaryCtxRelease(d.id)) }()
	if err := d.driver.CtxSetCurrent(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.driver.CtxSetCurrent(0)) }()
	s, err := d.driver.StreamCreate(cudriver.StreamNonBlocking)
	if err != nil {
		return err
	}
	return errors.Join(calls(s), d.driver.StreamDestroy(s))
}

func tryDescriptors(d device, _ cudriver.Stream) error {
	kind := cudriver.Pinned(d.id, true)
	n, err := d.driver.MemGetAllocationGranularity(kind, cudriver.GranularityRecommended)
	if err != nil {
		return err
	}
	h, err := d.driver.MemCreate(n, kind)
	if err != nil {
		return err
	}
	f, err := sys.FileOf("segment", func() (int, error) { return d.driver.MemExport(h) })
	if err == nil {
		err = f.Close()
	}
	return errors.Join(err, d.driver.MemRelease(h))
}

// onLegacy calls f with a small allocation of cuMemAlloc, and frees the allocation afterwards. The
// context of d must be current, as it is within withStream. The error joins the errors of f and of
// the driver.
func (d device) onLegacy(f func(p cudriver.Ptr) error) error {
	p, err := d.driver.MemAlloc(4)
	if err != nil {
		return err
	}
	return errors.Join(f(p), d.driver.MemFree(p))
}

// tryNumbers performs the operations of the clock in package cuda: a stream writes a number to
// a shared page and waits for it, and the host reads it. It returns nil if they work. The
// device's context must be current.
func tryNumbers(d device, s cudriver.Stream) (err error) {
	f, err := sys.Memfd("number")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := sys.Resize(f, int64(os.Getpagesize())); err != nil {
		return err
	}
	page, err := sys.MapRange(f, 0, os.Getpagesize())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sys.Unmap(page)) }()
	if err := d.driver.MemHostRegister(page, cudriver.HostPortable|cudriver.HostDeviceMap); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.driver.MemHostUnregister(page)) }()
	at, err := d.driver.MemHostGetDevicePointer(page)
	if err == nil {
		err = d.driver.StreamWriteValue32(s, at, 1)
	}
	if err == nil {
		err = d.driver.StreamWaitValue32(s, at, 1)
	}
	if err = errors.Join(err, d.driver.StreamSynchronize(s)); err != nil {
		return err
	}
	if n := sys.Counter(page).Load(); n != 1 {
		return fmt.Errorf("host read %d after the device wrote 1", n)
	}
	return nil
}

func tryLegacy(d device, _ cudriver.Stream) error {
	return d.onLegacy(func(p cudriver.Ptr) error {
		_, err := d.driver.IPCGetMemHandle(p)
		return err
	})
}

func tryEvents(d device, _ cudriver.Stream) error {
	e, err := d.driver.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming)
	if err != nil {
		return err
	}
	_, err = d.driver.IPCGetEventHandle(e)
	return errors.Join(err, d.driver.EventDestroy(e))
}

func tryHost(d device, _ cudriver.Stream) error {
	host := make([]byte, 1<<16)
	if err := d.driver.MemHostRegister(host, cudriver.HostPortable|cudriver.HostDeviceMap); err != nil {
		return err
	}
	return d.driver.MemHostUnregister(host)
}

// Print writes the report as text to out. It stops at the first error of out, and returns it.
func (r *Report) Print(out io.Writer) (err error) {
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(out, format+"\n", args...)
		}
	}
	r.print(line)
	for i, a := range r.Advice {
		if i == 0 {
			line("\nrecommended changes:")
		}
		line("  - %s", a)
	}
	return err
}

// reachableNames lists the devices with memory that d can access. If there are none, it returns a
// sentence about that.
func (d DeviceReport) reachableNames() string {
	if len(d.Peers) == 0 {
		return "no other device: copies between them go through the host"
	}
	names := make([]string, len(d.Peers))
	for i, n := range d.Peers {
		names[i] = fmt.Sprintf("cuda:%d", n)
	}
	return strings.Join(names, ", ")
}

func (r *Report) print(line func(format string, args ...any)) {
	if r.Missing != "" {
		line("no GPU: %s", r.Missing)
		return
	}
	what := "driver of CUDA " + r.Driver
	if r.Simulated {
		what = "simulated devices, configured by " + cudriver.SimulateKey
	}
	line("%s", what)
	if r.Visible != "" {
		line("CUDA_VISIBLE_DEVICES is %q: only these devices are visible", r.Visible)
	}
	for _, d := range r.Devices {
		line("%s  %s, compute %s, %d of %d MiB free, UUID %s", d.Name, d.Model, d.Compute, d.Free>>20,
			d.Total>>20, d.UUID)
		if len(r.Devices) > 1 {
			line("  reaches the memory of %s", d.reachableNames())
		}
		if d.Unusable != "" {
			line("  cannot be used: %s", d.Unusable)
		}
		for _, w := range d.Ways {
			if w.Err == "" {
				line("  %s: permitted", w.Name)
			} else {
				line("  %s: NOT permitted: %s; %s", w.Name, w.Err, w.Lost)
			}
		}
	}
}

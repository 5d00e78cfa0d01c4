package sim

import (
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

// DriverVersion returns the version of CUDA 12.8.
func (d *Driver) DriverVersion() (int, error) { return 12080, nil }

// DeviceCount returns the number of devices.
func (d *Driver) DeviceCount() (n int, err error) {
	err = d.runCall("cuDeviceGetCount", initialised, func(*context) cudriver.Result {
		n = len(d.devices)
		return cudriver.Success
	})
	return n, err
}

// DeviceGet returns a device by its index.
func (d *Driver) DeviceGet(ordinal int) (id cudriver.Device, err error) {
	err = d.device("cuDeviceGet", cudriver.Device(ordinal), func(dev *device) cudriver.Result {
		id = dev.id
		return cudriver.Success
	})
	return id, err
}

// DeviceName returns a name that marks the device as simulated.
func (d *Driver) DeviceName(id cudriver.Device) (string, error) {
	return "Simulated device", d.device("cuDeviceGetName", id,
		func(*device) cudriver.Result { return cudriver.Success })
}

// DeviceUUID returns a UUID derived from the device file's identity.
func (d *Driver) DeviceUUID(id cudriver.Device) (u [16]byte, err error) {
	err = d.device("cuDeviceGetUuid_v2", id, func(dev *device) cudriver.Result {
		file, _, err := sys.Identify(dev.file)
		if err != nil {
			return cudriver.ErrorOperatingSystem
		}
		for i := range 8 {
			u[i], u[8+i] = byte(file.Device>>(8*i)), byte(file.Inode>>(8*i))
		}
		return cudriver.Success
	})
	return u, err
}

// DeviceTotalMem returns the size of the device's memory in bytes.
func (d *Driver) DeviceTotalMem(id cudriver.Device) (n uint64, err error) {
	err = d.device("cuDeviceTotalMem", id, func(dev *device) cudriver.Result {
		n = uint64(dev.size)
		return cudriver.Success
	})
	return n, err
}

// DeviceAttribute returns an attribute of a device that supports everything that Shoal needs,
// or ErrorInvalidValue for an attribute that Shoal does not query.
func (d *Driver) DeviceAttribute(a cudriver.Attribute, id cudriver.Device) (v int, err error) {
	err = d.device("cuDeviceGetAttribute", id, func(*device) cudriver.Result {
		switch a {
		case cudriver.AttributeUnifiedAddressing, cudriver.AttributeVirtualMemory,
			cudriver.AttributePosixFileDescriptors, cudriver.AttributeIPCEvents:
			v = 1
		case cudriver.AttributeComputeMajor:
			v = 9
		case cudriver.AttributeComputeMode:
			if d.taken {
				v = 3 // CU_COMPUTEMODE_EXCLUSIVE_PROCESS
			}
		case cudriver.AttributeComputeMinor:
		default:
			return cudriver.ErrorInvalidValue
		}
		return cudriver.Success
	})
	return v, err
}

// Part simulates, if apart is set, devices without peer access to each other. By default they
// have it.
func (d *Driver) Part(apart bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.apart = apart
}

// DeviceCanAccessPeer returns true for all other devices, unless [Driver.Part] has disabled peer
// access.
func (d *Driver) DeviceCanAccessPeer(id, peer cudriver.Device) (can bool, err error) {
	err = d.device("cuDeviceCanAccessPeer", id, func(*device) cudriver.Result {
		if peer < 0 || int(peer) >= len(d.devices) {
			return cudriver.ErrorInvalidDevice
		}
		can = peer != id && !d.apart
		return cudriver.Success
	})
	return can, err
}

// PrimaryCtxRetain retains the device's primary context, and creates it if necessary. It does
// not make the context current. The caller must release it.
func (d *Driver) PrimaryCtxRetain(id cudriver.Device) (c cudriver.Context, err error) {
	err = d.device("cuDevicePrimaryCtxRetain", id, func(dev *device) cudriver.Result {
		if dev.ctx == nil && d.taken {
			return cudriver.ErrorDeviceUnavailable
		}
		if dev.ctx == nil {
			time.Sleep(d.times.Context)
			made := &context{id: cudriver.Context(d.nextHandle()), dev: dev, opened: map[cudriver.IPCHandle]*mapping{}}
			if r := made.allocateOwn(contextTakes); r != cudriver.Success {
				return r
			}
			d.openQueues(made)
			dev.ctx = made
			d.contexts[made.id] = made
		}
		dev.refs++
		c = dev.ctx.id
		return cudriver.Success
	})
	return c, err
}

// Take simulates, if taken is set, another process that uses all devices exclusively, and their
// exclusive compute mode: a context cannot be created.
func (d *Driver) Take(taken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken = taken
}

// PrimaryCtxRelease releases the primary context. The last release destroys the context, and first
// waits for the pending waits of its streams.
func (d *Driver) PrimaryCtxRelease(id cudriver.Device) error {
	const call = "cuDevicePrimaryCtxRelease"
	d.mu.Lock()
	var last *context
	if id >= 0 && int(id) < len(d.devices) && d.devices[id].refs == 1 {
		last = d.devices[id].ctx
	}
	d.mu.Unlock()
	d.awaitContextIn(call, last)
	return d.device(call, id, func(dev *device) cudriver.Result {
		if dev.ctx == nil {
			return cudriver.ErrorInvalidContext
		}
		if dev.refs--; dev.refs == 0 {
			dev.ctx.closeQueues()
			dev.ctx.freeOwn()
			delete(d.contexts, dev.ctx.id)
			dev.ctx = nil
		}
		return cudriver.Success
	})
}

// CtxSetCurrent sets the current context of this OS thread. 0 means none. The caller must have
// locked the goroutine to the thread.
func (d *Driver) CtxSetCurrent(id cudriver.Context) error {
	return d.runCall("cuCtxSetCurrent", initialised, func(*context) cudriver.Result {
		if id != 0 && d.contexts[id] == nil {
			return cudriver.ErrorInvalidContext
		}
		d.current[sys.ThreadID()] = id
		return cudriver.Success
	})
}

// CtxGetCurrent returns the current context of this OS thread, or 0 if it has none.
func (d *Driver) CtxGetCurrent() (id cudriver.Context, err error) {
	err = d.runCall("cuCtxGetCurrent", initialised, func(*context) cudriver.Result {
		id = d.current[sys.ThreadID()]
		return cudriver.Success
	})
	return id, err
}

package sim_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/test/testutil"
)

// second returns the answer of a call that has two results.
func second[T any](_ T, err error) error { return err }

// made is what the calls of TestDriver_RefusesWhatMeansNothing are made with.
type made struct {
	*sim.Driver
	ctx, far cudriver.Context // far is of the other device, of which far and near are streams
	h        cudriver.MemHandle
	p        cudriver.Ptr // of h, 4 MiB
	plain    cudriver.Ptr // of cuMemAlloc
	host     []byte       // registered
	near     cudriver.Stream
	away     cudriver.Stream
	event    cudriver.Event // without times
	timed    cudriver.Event // never recorded
}

func makeAll(t *testing.T) *made {
	t.Helper()
	_, d := open(t, 2)
	m := &made{Driver: d, host: make([]byte, 1<<14)}
	var err error
	m.far, err = d.PrimaryCtxRetain(1)
	testutil.NoError(t, err)
	m.ctx, err = d.CtxGetCurrent()
	testutil.NoError(t, err)
	testutil.NoError(t, d.CtxSetCurrent(m.far))
	m.away = stream(t, d)
	testutil.NoError(t, d.CtxSetCurrent(m.ctx))
	m.near = stream(t, d)
	m.h, err = d.MemCreate(4*mib, cudriver.Pinned(0, true))
	testutil.NoError(t, err)
	m.p, err = mapped(d, m.h, 4*mib, 0)
	testutil.NoError(t, err)
	m.plain, err = d.MemAlloc(4096)
	testutil.NoError(t, err)
	testutil.NoError(t, d.MemHostRegister(m.host[4096:8192], 0))
	m.event, err = d.EventCreate(cudriver.EventDisableTiming)
	testutil.NoError(t, err)
	m.timed, err = d.EventCreate(0)
	testutil.NoError(t, err)
	return m
}

// handleWith returns the handle of memory, with another number in one of its words.
func (m *made) handleWith(word int, n uint64) cudriver.IPCHandle {
	h, _ := m.IPCGetMemHandle(m.plain)
	binary.LittleEndian.PutUint64(h[8*word:], n)
	return h
}

// None of it does anything, nor costs the context.
func TestDriver_RefusesWhatMeansNothing(t *testing.T) {
	const value, device, context, handle = cudriver.ErrorInvalidValue, cudriver.ErrorInvalidDevice,
		cudriver.ErrorInvalidContext, cudriver.ErrorInvalidHandle
	m := makeAll(t)
	all := []cudriver.AccessDesc{cudriver.Access(0, cudriver.AccessReadWrite)}
	for _, c := range []struct {
		name string
		want cudriver.Result
		call func() error
	}{
		{"a device before the first", device, func() error { return second(m.DeviceGet(-1)) }},
		{"a peer before the first", device, func() error { return second(m.DeviceCanAccessPeer(0, -1)) }},
		{"a peer behind the last", device, func() error { return second(m.DeviceCanAccessPeer(0, 2)) }},
		{"an attribute that is none", value, func() error { return second(m.DeviceAttribute(9999, 0)) }},
		{"a context that is none", context, func() error { return m.CtxSetCurrent(1) }},
		{"no bytes of memory", value, func() error { return second(m.MemCreate(0, cudriver.Pinned(0, true))) }},
		{"memory of no kind", value, func() error { return second(m.MemCreate(2*mib, cudriver.AllocationProp{})) }},
		{"memory of a device before the first", device,
			func() error { return second(m.MemCreate(2*mib, cudriver.Pinned(-1, true))) }},
		{"no bytes of addresses", value, func() error { return second(m.MemAddressReserve(0, 0)) }},
		{"addresses that are no multiple", value, func() error { return second(m.MemAddressReserve(mib, 0)) }},
		{"addresses aligned to more", value, func() error { return second(m.MemAddressReserve(2*mib, 4*mib)) }},
		{"a part of a reservation freed", value, func() error { return m.MemAddressFree(m.p, 2*mib) }},
		{"no reservation freed", value, func() error { return m.MemAddressFree(m.p+2*mib, 0) }},
		{"no memory mapped", value, func() error { return m.MemMap(m.p, 4*mib, 1) }},
		{"no mapping unmapped", value, func() error { return m.MemUnmap(m.plain, 4096) }},
		{"access for nobody", value, func() error { return m.MemSetAccess(m.p, 4*mib, nil) }},
		{"access to a part", value, func() error { return m.MemSetAccess(m.p, 2*mib, all) }},
		{"access to what is not mapped", value, func() error { return m.MemSetAccess(m.plain, 4096, all) }},
		{"access for a device behind the last", device,
			func() error { return m.MemSetAccess(m.p, 4*mib, []cudriver.AccessDesc{cudriver.Access(2, 3)}) }},
		{"access for a device before the first", device,
			func() error { return m.MemSetAccess(m.p, 4*mib, []cudriver.AccessDesc{cudriver.Access(-1, 3)}) }},
		{"no bytes allocated", value, func() error { return second(m.MemAlloc(0)) }},
		{"a mapping freed", value, func() error { return m.MemFree(m.p) }},
		{"the range of no address", cudriver.ErrorNotFound,
			func() error { _, _, err := m.MemGetAddressRange(1 << 40); return err }},
		{"no bytes of the host", value, func() error { return m.MemHostRegister(nil, 0) }},
		{"a page of the host, again", cudriver.ErrorHostMemoryAlreadyRegistered,
			func() error { return m.MemHostRegister(m.host[8191:8193], 0) }},
		{"pages of the host that are not registered", 713, func() error { return m.MemHostUnregister(m.host) }},
		{"the address of pages that are not registered", value,
			func() error { return second(m.MemHostGetDevicePointer(m.host)) }},
		{"16 bits at an odd address", value, func() error { return m.MemsetD16Async(m.p+1, 1, 1, m.near) }},
		{"32 bits at half an address", value, func() error { return m.MemsetD32Async(m.p+2, 1, 1, m.near) }},
		{"a number at half an address", value, func() error { return m.StreamWriteValue32(m.near, m.p+2, 1) }},
		{"a stream of another context", handle, func() error { return m.MemsetD8Async(m.p, 1, 1, m.away) }},
		{"no stream destroyed", handle, func() error { return m.StreamDestroy(1) }},
		{"no stream asked", handle, func() error { return m.StreamQuery(1) }},
		{"an event recorded in no stream", handle, func() error { return m.EventRecord(m.event, 1) }},
		{"an event recorded in another context", handle, func() error { return m.EventRecord(m.event, m.away) }},
		{"no event waited for", handle, func() error { return m.StreamWaitEvent(m.near, 1) }},
		{"no event destroyed", handle, func() error { return m.EventDestroy(1) }},
		{"the time of an event without", handle, func() error {
			testutil.NoError(t, m.EventRecord(m.event, m.near))
			testutil.NoError(t, m.StreamSynchronize(m.near))
			return second(m.EventElapsedTime(m.event, m.event))
		}},
		{"an event of another context, recorded", handle, func() error {
			testutil.NoError(t, m.CtxSetCurrent(m.far))
			defer m.CtxSetCurrent(m.ctx)
			return m.EventRecord(m.event, m.away)
		}},
		{"a handle of an event in memory", value, func() error {
			h := m.handleWith(1, 1)
			binary.LittleEndian.PutUint64(h[:], 0x657674)
			return second(m.IPCOpenEventHandle(h))
		}},
		{"a handle of another device's event", context, func() error {
			e, err := m.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming)
			testutil.NoError(t, err)
			h, err := m.IPCGetEventHandle(e)
			testutil.NoError(t, err)
			binary.LittleEndian.PutUint64(h[8:], 1)
			binary.LittleEndian.PutUint64(h[16:], 1)
			return second(m.IPCOpenEventHandle(h))
		}},
		{"the time of an event that was not recorded", handle,
			func() error { return second(m.EventElapsedTime(m.timed, m.timed)) }},
		{"the handle of an event of this process alone", handle,
			func() error { return second(m.IPCGetEventHandle(m.event)) }},
		{"the handle of memory of the host", value, func() error {
			p, err := m.MemHostGetDevicePointer(m.host[4096:8192])
			testutil.NoError(t, err)
			return second(m.IPCGetMemHandle(p))
		}},
		{"a handle of memory as an event's", value,
			func() error { return second(m.IPCOpenEventHandle(m.handleWith(1, 1))) }},
		{"a handle of another kind", value, func() error { return second(m.IPCOpenMemHandle(m.handleWith(0, 1))) }},
		{"a handle of a device behind the last", value,
			func() error { return second(m.IPCOpenMemHandle(m.handleWith(2, 2))) }},
		{"a handle of memory behind the end", value,
			func() error { return second(m.IPCOpenMemHandle(m.handleWith(3, 1<<62))) }},
		{"a handle of more memory than there is", value,
			func() error { return second(m.IPCOpenMemHandle(m.handleWith(4, 1<<62))) }},
		{"a handle of no memory", value, func() error { return second(m.IPCOpenMemHandle(m.handleWith(4, 0))) }},
		{"a handle of memory that the other device has not", handle, func() error {
			h := m.handleWith(1, 1) // of another process
			binary.LittleEndian.PutUint64(h[16:], 1)
			return second(m.IPCOpenMemHandle(h))
		}},
		{"a handle of memory that its process has not", handle, func() error {
			h := m.handleWith(1, 1)
			binary.LittleEndian.PutUint64(h[24:], 32*mib)
			return second(m.IPCOpenMemHandle(h))
		}},
		{"a handle of a part of memory", handle, func() error {
			h := m.handleWith(1, 1)
			binary.LittleEndian.PutUint64(h[32:], 1024)
			return second(m.IPCOpenMemHandle(h))
		}},
		{"no memory closed", value, func() error { return m.IPCCloseMemHandle(m.plain) }},
		{"no module unloaded", handle, func() error { return m.ModuleUnload(1) }},
		{"a function of no module", handle, func() error { return second(m.ModuleGetFunction(1, "f")) }},
	} {
		if err := c.call(); !isResult(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	testutil.NoError(t, m.MemsetD8Async(m.p, 1, 1, m.near))
	testutil.NoError(t, m.CtxSynchronize())
}

func isResult(err error, want cudriver.Result) bool {
	e, ok := err.(*cudriver.Error)
	return ok && e.Result == want
}

func TestVirtualMemory_AMappingIsAWholeHandle(t *testing.T) {
	_, d := open(t, 1)
	h, err := d.MemCreate(4*mib, cudriver.Pinned(0, true))
	testutil.NoError(t, err)
	p, err := d.MemAddressReserve(8*mib, 0)
	testutil.NoError(t, err)
	fails(t, cudriver.ErrorInvalidValue, d.MemMap(p, 2*mib, h))      // a part of it
	fails(t, cudriver.ErrorInvalidValue, d.MemMap(p+4096, 4*mib, h)) // not at a multiple
	fails(t, cudriver.ErrorInvalidValue, d.MemMap(p+6*mib, 4*mib, h))
	testutil.NoError(t, d.MemMap(p+2*mib, 4*mib, h))
	fails(t, cudriver.ErrorAlreadyMapped, d.MemMap(p+4*mib, 4*mib, h))
	fails(t, cudriver.ErrorInvalidValue, d.MemUnmap(p, 8*mib))
	testutil.NoError(t, d.MemUnmap(p+2*mib, 4*mib))
	testutil.NoError(t, d.MemAddressFree(p, 8*mib))
	fails(t, cudriver.ErrorInvalidValue, d.MemAddressFree(p, 8*mib))
}

func TestVirtualMemory_HoldsGarbageWhoeverHadIt(t *testing.T) {
	_, d := open(t, 1)
	s, got := stream(t, d), make([]byte, 1)
	for range 2 {
		const all = size - 2*mib // that the context has left
		h, err := d.MemCreate(all, cudriver.Pinned(0, true))
		testutil.NoError(t, err)
		p, err := mapped(d, h, all, 0)
		testutil.NoError(t, err)
		for at := cudriver.Ptr(0); at < all; at += 2 * mib {
			testutil.NoError(t, d.MemcpyDtoHAsync(got, p+at, s))
			testutil.NoError(t, d.MemsetD8Async(p+at, 7, 1, s))
			testutil.NoError(t, d.StreamSynchronize(s))
			if got[0] == 0 || got[0] == 7 {
				t.Errorf("new memory reads %d at %d", got[0], at)
			}
		}
		testutil.NoError(t, d.MemUnmap(p, all))
		testutil.NoError(t, d.MemRelease(h))
	}
}

func TestContext_ThePrimaryOneIsCounted(t *testing.T) {
	_, d := open(t, 2)
	fails(t, cudriver.ErrorInvalidContext, d.PrimaryCtxRelease(1))
	first, err := d.CtxGetCurrent()
	testutil.NoError(t, err)
	again, err := d.PrimaryCtxRetain(0)
	if again != first || err != nil {
		t.Errorf("retained again it is %#x, not %#x, %v", again, first, err)
	}
	testutil.NoError(t, d.PrimaryCtxRelease(0))
	_, err = d.MemAlloc(1)
	testutil.NoError(t, err)
	d.Take(true)
	_, err = d.PrimaryCtxRetain(0)
	testutil.NoError(t, err) // it has one
	_, err = d.PrimaryCtxRetain(1)
	fails(t, cudriver.ErrorDeviceUnavailable, err)
	if mode, err := d.DeviceAttribute(cudriver.AttributeComputeMode, 1); mode != 3 || err != nil {
		t.Errorf("the compute mode is %d, %v", mode, err)
	}
	d.Take(false)
	second, err := d.PrimaryCtxRetain(1)
	testutil.NoError(t, err)
	other := make(chan error)
	go func() {
		runtime.LockOSThread()
		other <- d.CtxSetCurrent(second)
	}()
	testutil.NoError(t, <-other)
	if c, err := d.CtxGetCurrent(); c != first || err != nil {
		t.Errorf("another thread has set this one's context to %#x, %v", c, err)
	}
}

func TestDevice_HasItsOwnIdentity(t *testing.T) {
	_, d := open(t, 2)
	first, err := d.DeviceUUID(0)
	testutil.NoError(t, err)
	second, err := d.DeviceUUID(1)
	testutil.NoError(t, err)
	if first == second {
		t.Errorf("both are %x", first)
	}
	reaches := func(peer cudriver.Device, want bool) {
		t.Helper()
		if can, err := d.DeviceCanAccessPeer(0, peer); can != want || err != nil {
			t.Errorf("device 0 reaches device %d: %v, %v", peer, can, err)
		}
	}
	reaches(0, false)
	reaches(1, true)
	d.Part(true)
	reaches(1, false)
}

// A number is past another one when it is up to 2³¹-1 more, whatever the sign.
func TestStream_NumbersGoRound(t *testing.T) {
	_, d := open(t, 1)
	p, err := d.MemAlloc(4)
	testutil.NoError(t, err)
	s := stream(t, d)
	testutil.NoError(t, d.StreamWriteValue32(s, p, 5))
	testutil.NoError(t, d.StreamWaitValue32(s, p, 0xfffffff0)) // 21 before
	testutil.Eventually(t, func() bool { return d.StreamQuery(s) == nil }, "it waits for a number that is past")
	testutil.NoError(t, d.StreamWaitValue32(s, p, 6))
	fails(t, cudriver.ErrorNotReady, d.StreamQuery(s))
	other := stream(t, d)
	testutil.NoError(t, d.StreamWriteValue32(other, p, 6))
	testutil.NoError(t, d.StreamSynchronize(s))
}

// A handle of an event that is gone does not open the one that has its place.
func TestEvent_AHandleIsOfOneEvent(t *testing.T) {
	devices, d := open(t, 1)
	var handles [2]cudriver.IPCHandle
	for i := range handles {
		e, err := d.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming)
		testutil.NoError(t, err)
		handles[i], err = d.IPCGetEventHandle(e)
		testutil.NoError(t, err)
		if i == 0 {
			testutil.NoError(t, d.EventDestroy(e))
		}
	}
	if said, _ := child(t, devices, "event", hex.EncodeToString(handles[0][:]),
		false); said != " cuIpcOpenEventHandle: CUDA_ERROR_INVALID_HANDLE (400)" {
		t.Errorf("of the one that is gone the other process says %q", said)
	}
	if said, _ := child(t, devices, "event", hex.EncodeToString(handles[1][:]), false); said != "waited <nil>" {
		t.Errorf("of the other one it says %q", said)
	}
}

func TestVirtualMemory_WhatMayBeReadOnlyIsNotWritten(t *testing.T) {
	for name, write := range map[string]func(m *made, readable cudriver.Ptr) error{
		"from the host":   func(m *made, p cudriver.Ptr) error { return m.MemcpyHtoDAsync(p, []byte{1}, m.near) },
		"from the device": func(m *made, p cudriver.Ptr) error { return m.MemcpyAsync(p, m.plain, 1, m.near) },
		"from itself": func(m *made, p cudriver.Ptr) error {
			return m.MemcpyPeerAsync(p, m.ctx, m.plain, m.ctx, 1, m.near)
		},
		"a number":       func(m *made, p cudriver.Ptr) error { return m.StreamWriteValue32(m.near, p, 1) },
		"behind its end": func(m *made, p cudriver.Ptr) error { return m.MemsetD8Async(p+4*mib, 1, 1, m.near) },
		"half of it beyond": func(m *made, p cudriver.Ptr) error {
			return m.MemcpyAsync(m.plain, p+4*mib-1, 2, m.near)
		},
		"from the far side": func(m *made, p cudriver.Ptr) error {
			return m.MemcpyPeerAsync(m.plain, m.ctx, p, m.far, 1, m.near)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := makeAll(t)
			testutil.NoError(t, m.MemSetAccess(m.p, 4*mib,
				[]cudriver.AccessDesc{cudriver.Access(0, cudriver.AccessRead)}))
			testutil.NoError(t, write(m, m.p))
			fails(t, cudriver.ErrorIllegalAddress, m.StreamSynchronize(m.near))
		})
	}
	m := makeAll(t)
	testutil.NoError(t, m.MemcpyPeerAsync(m.p, m.ctx, m.plain, 1, 1, m.near))
	fails(t, cudriver.ErrorInvalidContext, m.StreamSynchronize(m.near))
}

// After a fault nothing is done any more that was queued behind it.
func TestStream_AFaultEndsTheWork(t *testing.T) {
	m := makeAll(t)
	page := m.host[4096:8192]
	testutil.NoError(t, m.MemsetD8Async(m.plain, 7, 1, m.near))
	testutil.NoError(t, m.StreamSynchronize(m.near))
	m.Hold(true)
	testutil.NoError(t, m.MemsetD8Async(m.p+4*mib, 1, 1, m.near))
	testutil.NoError(t, m.MemcpyDtoHAsync(page[:1], m.plain, m.near))
	m.Hold(false)
	testutil.Eventually(t, m.Idle, "the stream does not end")
	if page[0] != 0 {
		t.Errorf("what was queued behind a fault has written %d", page[0])
	}
}

func init() {
	roles["address"] = func(d *sim.Driver, _ string) (string, error) {
		p, err := d.MemAlloc(4096)
		return fmt.Sprint(uint64(p)), err
	}
	roles["unfinished"] = func(d *sim.Driver, _ string) (string, error) {
		e, err := d.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming)
		if err != nil {
			return "", err
		}
		s, err := d.StreamCreate(0)
		if err != nil {
			return "", err
		}
		d.Hold(true)
		h, err := d.IPCGetEventHandle(e)
		return hex.EncodeToString(h[:]), errors.Join(err, d.EventRecord(e, s))
	}
	roles["handle of a handle"] = func(d *sim.Driver, arg string) (string, error) {
		e, err := d.IPCOpenEventHandle(handle(arg))
		if err != nil {
			return "", err
		}
		return "", second(d.IPCGetEventHandle(e))
	}
}

func TestVirtualMemory_AnAddressIsOfOneProcess(t *testing.T) {
	devices, d := open(t, 1)
	p, err := d.MemAlloc(4096)
	testutil.NoError(t, err)
	if said, _ := child(t, devices, "address", "", false); said == fmt.Sprint(uint64(p))+" <nil>" {
		t.Errorf("both processes have memory at %#x", p)
	}
}

// A wait for an event of a process that dies has no end: nobody completes it, and nobody can.
func TestEvent_OfTheDeadNeverComes(t *testing.T) {
	devices, d := open(t, 1)
	said, c := child(t, devices, "unfinished", "", true)
	e, err := d.IPCOpenEventHandle(handle(said[:128]))
	testutil.NoError(t, err)
	s := stream(t, d)
	fails(t, cudriver.ErrorNotReady, d.EventQuery(e))
	testutil.NoError(t, d.StreamWaitEvent(s, e))
	fails(t, cudriver.ErrorNotReady, d.StreamQuery(s))
	if said, _ := child(t, devices, "handle of a handle", said[:128],
		false); said != " cuIpcGetEventHandle: CUDA_ERROR_INVALID_HANDLE (400)" {
		t.Errorf("the handle of an event that was opened: %q", said)
	}
	testutil.NoError(t, c.Process.Kill())
	c.Wait()
	for range 10 {
		fails(t, cudriver.ErrorNotReady, d.StreamQuery(s))
		fails(t, cudriver.ErrorNotReady, d.EventQuery(e))
		time.Sleep(time.Millisecond)
	}
	_, err = d.IPCOpenEventHandle(handle(said[:128]))
	fails(t, cudriver.ErrorInvalidHandle, err)
}

package rules_test

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// shared is memory that other processes can have, as cuMemCreate makes it, and its address here.
type shared struct {
	handle cudriver.MemHandle
	base   cudriver.Ptr
	size   uint64
}

// create makes shared memory of the first device, of the smallest size, in which all bytes are b.
func (p *process) create(b byte) *shared {
	return p.createOf(b, testutil.Must(p.MemGetAllocationGranularity(cudriver.Pinned(0, true),
		cudriver.GranularityMinimum)))
}

// createOf is create of another size.
func (p *process) createOf(b byte, size uint64) *shared {
	m := p.mapped(testutil.Must(p.MemCreate(size, cudriver.Pinned(0, true))), size)
	p.fill(m.base, b, size)
	return m
}

// mapped gives memory an address.
func (p *process) mapped(h cudriver.MemHandle, size uint64) *shared {
	m := &shared{h, testutil.Must(p.MemAddressReserve(size, 0)), size}
	testutil.MustNoError(p.MemMap(m.base, size, h))
	testutil.MustNoError(p.MemSetAccess(m.base, size,
		[]cudriver.AccessDesc{cudriver.Access(0, cudriver.AccessReadWrite)}))
	return m
}

// export makes a file of it.
func (p *process) export(m *shared) *os.File {
	return testutil.Must(sys.FileOf("memory", func() (int, error) { return p.MemExport(m.handle) }))
}

// importFile maps the memory of a file, all of the smallest size, and closes the file.
func (p *process) importFile(f *os.File) *shared {
	defer f.Close()
	size := testutil.Must(p.MemGetAllocationGranularity(cudriver.Pinned(0, true), cudriver.GranularityMinimum))
	return p.mapped(testutil.Must(p.importHandle(f)), size)
}

func (p *process) importHandle(f *os.File) (h cudriver.MemHandle, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) { h, err = p.MemImport(int(fd)) })
	if err == nil {
		err = failed
	}
	return h, err
}

// end gives memory back.
func (p *process) end(m *shared) {
	testutil.MustNoError(p.MemUnmap(m.base, m.size))
	testutil.MustNoError(p.MemAddressFree(m.base, m.size))
	testutil.MustNoError(p.MemRelease(m.handle))
}

// fill sets bytes, and waits until that is done.
func (p *process) fill(at cudriver.Ptr, b byte, n uint64) {
	testutil.MustNoError(p.MemsetD8Async(at, b, n, p.stream))
	testutil.MustNoError(p.StreamSynchronize(p.stream))
}

// read copies four bytes to the host.
func (p *process) read(at cudriver.Ptr) (uint32, error) {
	b := make([]byte, 4)
	err := p.MemcpyDtoHAsync(b, at, p.stream)
	if err == nil {
		err = p.StreamSynchronize(p.stream)
	}
	return binary.NativeEndian.Uint32(b), err
}

// reads says which byte is at an address, four times, or what the driver says.
func (p *process) reads(at cudriver.Ptr) string {
	v, err := p.read(at)
	if err != nil {
		return said(err)
	}
	if b := v & 0xff; v == b*0x01010101 {
		return fmt.Sprintf("reads %d", b)
	}
	return fmt.Sprintf("reads %#x", v)
}

// goesOn says whether this process can still work on memory.
func (p *process) goesOn(at cudriver.Ptr) string {
	if err := p.MemsetD8Async(at, 9, 4, p.stream); err != nil {
		return said(err)
	}
	if answer := p.reads(at); answer != "reads 9" {
		return answer
	}
	return "goes on"
}

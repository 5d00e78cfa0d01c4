package mpi

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/shoal-mp/shoal/dist/internal/collective"
)

// A Comm is an MPI communicator. It implements [collective.Comm], which says how its methods may
// be called. It is made by [Library.World] or [Comm.Split]. Errors of its methods are [*Error].
type Comm struct {
	lib    *Library
	handle uintptr
	rank   int
	size   int
}

var _ collective.Comm = (*Comm)(nil)

// World returns the communicator of all ranks, MPI_COMM_WORLD. It must be called after
// [Library.Init]. The result must not be freed.
func (l *Library) World() *Comm { return l.newComm(l.abi.world) }

func (l *Library) newComm(handle uintptr) *Comm {
	c, n := &Comm{lib: l, handle: handle}, new(int32)
	if l.callFunc(commRank, handle, uintptr(unsafe.Pointer(n))) == nil {
		c.rank = int(*n)
	}
	if l.callFunc(commSize, handle, uintptr(unsafe.Pointer(n))) == nil {
		c.size = int(*n)
	}
	return c
}

// returnErrors makes the library return errors. By default it aborts the process.
func (c *Comm) returnErrors() error {
	return c.lib.callFunc(commSetErrhandler, c.handle, c.lib.abi.errorsReturn)
}

// Rank returns the rank of this process.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Comm) Size() int { return c.size }

// countElements returns the number of elements of kind k in b and the library's handle for their
// MPI datatype.
func (c *Comm) countElements(k collective.Kind, b []byte) (n, kind uintptr) {
	return uintptr(len(b) / k.Size()), c.lib.abi.kinds[k]
}

func (c *Comm) opHandle(op collective.Op) uintptr { return c.lib.abi.ops[op] }

// Broadcast implements [collective.Comm] by MPI_Bcast.
func (c *Comm) Broadcast(root int, b []byte) error {
	return c.lib.callFunc(bcast, uintptr(dataPointer(b)), uintptr(len(b)), c.lib.abi.kinds[kindByte],
		uintptr(root), c.handle)
}

// AllReduce implements [collective.Comm] by an in-place MPI_Allreduce.
func (c *Comm) AllReduce(k collective.Kind, op collective.Op, b []byte) error {
	n, kind := c.countElements(k, b)
	return c.lib.callFunc(allreduce, c.lib.abi.inPlace, uintptr(dataPointer(b)), n, kind, c.opHandle(op), c.handle)
}

// Reduce implements [collective.Comm] by MPI_Reduce. MPICH 4.0 dereferences MPI_IN_PLACE if the
// root is not rank 0, so such a root passes a copy of b as its input.
func (c *Comm) Reduce(root int, k collective.Kind, op collective.Op, b []byte) error {
	n, kind := c.countElements(k, b)
	do := func(src unsafe.Pointer) error {
		return c.lib.callFunc(reduce, uintptr(src), uintptr(dataPointer(b)), n, kind, c.opHandle(op),
			uintptr(root), c.handle)
	}
	switch {
	case root != c.rank:
		return do(dataPointer(b))
	case root == 0:
		return c.lib.callFunc(reduce, c.lib.abi.inPlace, uintptr(dataPointer(b)), n, kind, c.opHandle(op),
			uintptr(root), c.handle)
	}
	return do(dataPointer(slices.Clone(b)))
}

// ReduceScatter implements [collective.Comm] by MPI_Reduce_scatter_block.
func (c *Comm) ReduceScatter(k collective.Kind, op collective.Op, dst, src []byte) error {
	n, kind := c.countElements(k, dst)
	return c.lib.callFunc(reduceScatterBlock, uintptr(dataPointer(src)), uintptr(dataPointer(dst)), n, kind,
		c.opHandle(op), c.handle)
}

// AllGather implements [collective.Comm] by MPI_Allgather.
func (c *Comm) AllGather(dst, src []byte) error {
	n, kind := uintptr(len(src)), c.lib.abi.kinds[kindByte]
	return c.lib.callFunc(allgather, uintptr(dataPointer(src)), n, kind, uintptr(dataPointer(dst)), n, kind, c.handle)
}

// Gather implements [collective.Comm] by MPI_Gather.
func (c *Comm) Gather(root int, dst, src []byte) error {
	n, kind := uintptr(len(src)), c.lib.abi.kinds[kindByte]
	return c.lib.callFunc(gather, uintptr(dataPointer(src)), n, kind, uintptr(dataPointer(dst)), n, kind,
		uintptr(root), c.handle)
}

// Scatter implements [collective.Comm] by MPI_Scatter.
func (c *Comm) Scatter(root int, dst, src []byte) error {
	n, kind := uintptr(len(dst)), c.lib.abi.kinds[kindByte]
	return c.lib.callFunc(scatter, uintptr(dataPointer(src)), n, kind, uintptr(dataPointer(dst)), n, kind,
		uintptr(root), c.handle)
}

// AllToAll implements [collective.Comm] by MPI_Alltoall.
func (c *Comm) AllToAll(dst, src []byte) error {
	n, kind := uintptr(len(src)/c.size), c.lib.abi.kinds[kindByte]
	return c.lib.callFunc(alltoall, uintptr(dataPointer(src)), n, kind, uintptr(dataPointer(dst)), n, kind, c.handle)
}

// A sending is an MPI request for a message being sent. It keeps the message reachable until the
// request is complete.
type sending struct {
	lib     *Library
	request *uintptr
	bytes   []byte
}

// Send implements [collective.Comm] by MPI_Isend. The caller must poll Done until it returns true.
func (c *Comm) Send(dst, tag int, b []byte) (collective.Sending, error) {
	s := &sending{c.lib, new(uintptr), b}
	err := c.lib.callFunc(isend, uintptr(dataPointer(b)), uintptr(len(b)), c.lib.abi.kinds[kindByte], uintptr(dst),
		uintptr(tag), c.handle, uintptr(unsafe.Pointer(s.request)))
	return s, err
}

// Done implements [collective.Sending] by MPI_Test. It reports whether the message has been
// sent, so that its memory may be changed. It must not be called again after it has returned
// true.
func (s *sending) Done() (bool, error) {
	done := new(int32)
	err := s.lib.callFunc(test, uintptr(unsafe.Pointer(s.request)), uintptr(unsafe.Pointer(done)),
		s.lib.abi.statusIgnore)
	if err == nil && *done != 0 {
		s.bytes = nil
	}
	return *done != 0, err
}

// Probe implements [collective.Comm] by MPI_Iprobe for any sender. ok is false, without an
// error, if no message with the tag has arrived; size is in bytes.
func (c *Comm) Probe(tag int) (from, size int, ok bool, err error) {
	type probed struct {
		status   [statusSize]byte
		flag     int32
		received int32
	}
	p := new(probed)
	err = c.lib.callFunc(iprobe, uintptr(uint32(c.lib.abi.anySource)), uintptr(tag), c.handle,
		uintptr(unsafe.Pointer(&p.flag)), uintptr(unsafe.Pointer(&p.status)))
	if err != nil || p.flag == 0 {
		return 0, 0, false, err
	}
	err = c.lib.callFunc(getCount, uintptr(unsafe.Pointer(&p.status)), c.lib.abi.kinds[kindByte],
		uintptr(unsafe.Pointer(&p.received)))
	from = int(int32(binary.LittleEndian.Uint32(p.status[c.lib.abi.sourceAt:])))
	return from, int(p.received), err == nil, err
}

// Receive implements [collective.Comm] by MPI_Recv. b must be long enough for the message.
func (c *Comm) Receive(from, tag int, b []byte) error {
	return c.lib.callFunc(recv, uintptr(dataPointer(b)), uintptr(len(b)), c.lib.abi.kinds[kindByte], uintptr(from),
		uintptr(tag), c.handle, c.lib.abi.statusIgnore)
}

// Split implements [collective.Comm] by MPI_Comm_split. All ranks must call it. It returns nil,
// nil if member is false. The caller must free the result.
func (c *Comm) Split(member bool) (collective.Comm, error) {
	var color int32 = undefined
	if member {
		color = 1
	}
	handle := new(uintptr)
	err := c.lib.callFunc(commSplit, c.handle, uintptr(uint32(color)), uintptr(c.rank),
		uintptr(unsafe.Pointer(handle)))
	if err != nil || !member {
		return nil, err
	}
	part := c.lib.newComm(*handle)
	return part, part.returnErrors()
}

// Free releases the communicator by MPI_Comm_free. All of its ranks must call Free, before
// [Library.Finalize]. Free must not be called on World.
func (c *Comm) Free() error {
	handle := new(uintptr)
	*handle = c.handle
	return c.lib.callFunc(commFree, uintptr(unsafe.Pointer(handle)))
}

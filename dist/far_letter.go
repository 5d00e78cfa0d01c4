package dist

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// A mailbox is the reading end of a rank's inbox. Get blocks until a letter arrives. TryGet
// returns [ipc.ErrEmpty] if there is none. The caller must read or close each letter. Only one
// goroutine may read.
type mailbox interface {
	Get(ctx context.Context) (letter, error)
	TryGet() (letter, error)
}

// openMailbox returns the mailbox of this rank. It needs no closing. The error is [ErrClosed] if
// the group is closed.
func (m *member) openMailbox() (mailbox, error) {
	if m.far != nil {
		return farMailbox{&Group{member: m}}, nil
	}
	return m.posts.inbox(int(m.seat.Load())-1, m.size)
}

// deliverLetter puts a letter into the inbox of rank dst. If the inbox is full, it blocks until
// there is room or ctx ends, or returns [ipc.ErrFull] if try is set. The caller still owns the
// contents of l.
func (g *Group) deliverLetter(ctx context.Context, dst int, l letter, try bool) error {
	if g.far != nil {
		return g.far.sendLetter(ctx, dst, l, try)
	}
	inbox, err := g.posts.inbox(dst, g.size)
	if err != nil {
		return err
	}
	if try {
		return inbox.TryPut(l)
	}
	return inbox.Put(ctx, l)
}

// farMailbox is the inbox of this rank in a group over a library such as MPI.
type farMailbox struct{ *Group }

// Get waits for a letter, which the caller must read or close. Meanwhile it handles the notices
// of other ranks, for example that one has left. If ctx ends first, it returns the cause. Other
// errors are the same as for [farMailbox.TryGet]. Only the pump may call Get.
func (m farMailbox) Get(ctx context.Context) (letter, error) {
	for n := (nap{}); ; n.backOff() {
		l, err := m.TryGet()
		if !errors.Is(err, ipc.ErrEmpty) {
			return l, err
		}
		m.handleNotices()
		if ctx.Err() != nil {
			return letter{}, context.Cause(ctx)
		}
	}
}

// TryGet returns the next letter, or [ipc.ErrEmpty] if none has begun to arrive. It blocks while
// the further messages of a long letter arrive. The error wraps [codec.ErrFormat] if the message is
// shorter than a header. Only the pump may call TryGet: otherwise another call could receive the
// message that Probe has found.
func (m farMailbox) TryGet() (letter, error) {
	f := m.far
	from, size, ok, err := f.comm.Probe(tagLetter)
	if err != nil {
		return letter{}, err
	}
	if !ok {
		return letter{}, ipc.ErrEmpty
	}
	b := make([]byte, size)
	if err := f.comm.Receive(from, tagLetter, b); err != nil {
		return letter{}, err
	}
	if size < sealBytes {
		return letter{}, fmt.Errorf("message of %d bytes from rank %d is too short: %w", size, from, codec.ErrFormat)
	}
	if whole := int(binary.LittleEndian.Uint64(b)); whole > size {
		b = append(make([]byte, 0, whole), b...)
		for len(b) < whole {
			next := b[len(b):min(whole, len(b)+letterBytes)]
			if err := f.comm.Receive(from, tagLetter, next); err != nil {
				return letter{}, err
			}
			b = b[:len(b)+len(next)]
		}
	}
	l, err := unsealLetter(b)
	l.from = from
	return l, err
}

// letterBytes is how much of a letter goes at once. Tests set it.
var letterBytes = 256 << 20

// sendLetter starts to send a letter to rank dst and returns. The caller may release the
// contents of l then, because they are copied. At most inboxRoom letters to one rank are in
// flight; for another one sendLetter blocks until one has left, or returns [ipc.ErrFull] if try
// is set. If ctx ends first, it returns the context's cause. The error wraps [ipc.ErrShared] if
// a value refers to shared memory that cannot be copied. A failure after sendLetter has returned
// is not reported.
func (f *far) sendLetter(ctx context.Context, dst int, l letter, try bool) error {
	select {
	case f.rooms[dst] <- struct{}{}:
	default:
		if try {
			return ipc.ErrFull
		}
		select {
		case f.rooms[dst] <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	b, err := l.sealLetter()
	if err != nil {
		<-f.rooms[dst]
		return err
	}
	for len(b) > 0 {
		piece := b[:min(len(b), letterBytes)]
		b = b[len(piece):]
		s, err := f.comm.Send(dst, tagLetter, piece)
		last := func() {}
		if len(b) == 0 || err != nil {
			last = func() { <-f.rooms[dst] }
		}
		if err != nil {
			last()
			return err
		}
		f.driveSend(s, last)
	}
	return nil
}

// sealBytes are in front of a letter on its way: its length, its tag, and what is in it.
const sealBytes = 8 + 8 + 1

// sealLetter returns the encoding of a letter for another machine: its length, its tag, its
// form, and copies of its elements. The error wraps [ipc.ErrShared] if a value refers to shared
// memory that cannot be copied.
func (l letter) sealLetter() ([]byte, error) {
	b := binary.LittleEndian.AppendUint64(make([]byte, 8), uint64(l.tag))
	var err error
	if l.tensor != nil {
		b, err = sealTensor(append(b, tensorLetter), l.tensor)
	} else {
		b, err = l.value.sealValue(append(b, valueLetter))
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)))
	return b, err
}

func unsealLetter(b []byte) (l letter, err error) {
	l.tag = int(int64(binary.LittleEndian.Uint64(b[8:])))
	form, b := b[sealBytes-1], b[sealBytes:]
	if form == tensorLetter {
		l.tensor, err = unsealTensor(b)
	} else {
		l.value, err = unsealValue(b)
	}
	return l, err
}

// sealTensor appends the dtype, the shape and the elements of t, which may be on a device, to b
// and returns the extended slice.
func sealTensor(b []byte, t *tensor.Tensor) ([]byte, error) {
	here, err := t.CPU()
	if err != nil {
		return b, err
	}
	defer here.Close()
	b = append(b, byte(t.DType()), byte(t.Dims()))
	for _, n := range t.Shape() {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	err = tensor.Catch(func() {
		whole := here.Contiguous()
		defer whole.Close()
		b = append(b, tensor.Bytes(whole)...)
	})
	return b, err
}

func unsealTensor(b []byte) (t *tensor.Tensor, err error) {
	bad := fmt.Errorf("tensor of another rank: %w", codec.ErrFormat)
	if len(b) < 2 || len(b) < 2+8*int(b[1]) {
		return nil, bad
	}
	dt, shape := tensor.DType(b[0]), make([]int, b[1])
	for i := range shape {
		shape[i] = int(binary.LittleEndian.Uint64(b[2+8*i:]))
	}
	b = b[2+8*len(shape):]
	n := dt.Size()
	for _, s := range shape {
		if n *= s; s < 0 || n > len(b) {
			return nil, bad
		}
	}
	if n != len(b) {
		return nil, bad
	}
	t = tensor.Empty(dt, shape...)
	copy(tensor.Bytes(t), b)
	return t, nil
}

// sealValue appends a value to b and returns the extended slice: the name of the value's type,
// and its message with copies of its blocks. It returns [ipc.ErrShared] if a block cannot be
// copied.
func (p payload) sealValue(b []byte) ([]byte, error) {
	m := codec.Message{Body: p.body, Blocks: p.blocks}
	spans, ok, err := codec.Spans(m)
	if err != nil {
		return b, err
	}
	blocks := make([]crossing.Block, len(spans))
	for i, s := range spans {
		if !ok[i] {
			return b, ipc.ErrShared
		}
		blocks[i] = crossing.Block{Number: crossing.Copied, Span: s}
	}
	s := &memoryStream{}
	s.Write(binary.LittleEndian.AppendUint32(b, uint32(len(p.kind))))
	s.WriteString(p.kind)
	err = crossing.Send(context.Background(), link.NewConn(s, maxBody), valueLetter, m, blocks)
	return s.Bytes(), err
}

func unsealValue(b []byte) (p payload, err error) {
	bad := fmt.Errorf("value of another rank: %w", codec.ErrFormat)
	if len(b) < 4 {
		return p, bad
	}
	n, b := int(binary.LittleEndian.Uint32(b)), b[4:]
	if n > len(b) {
		return p, bad
	}
	p.kind = string(b[:n])
	s := &memoryStream{*bytes.NewBuffer(b[n:])}
	m, blocks, err := crossing.Recv(context.Background(), link.NewConn(s, maxBody), valueLetter)
	if err != nil {
		return p, err
	}
	p.body, p.blocks = m.Body, m.Blocks
	for _, block := range blocks {
		if block.Number != crossing.Copied {
			return p, errors.Join(bad, p.releaseBlocks())
		}
	}
	if err := crossing.Check(m, blocks, func(i int) int { return i }); err != nil {
		return p, errors.Join(err, p.releaseBlocks())
	}
	return p, nil
}

// maxBody bounds what a value has beside the elements of its tensors.
const maxBody = 1 << 30

// A memoryStream is the stream of a link in memory, for a letter that is written or read as a
// whole. It never blocks, so its deadlines have no effect.
type memoryStream struct{ bytes.Buffer }

func (*memoryStream) Close() error                     { return nil }
func (*memoryStream) SetReadDeadline(time.Time) error  { return nil }
func (*memoryStream) SetWriteDeadline(time.Time) error { return nil }

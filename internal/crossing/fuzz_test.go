package crossing_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
)

// A replay is a stream with recorded bytes of the other side.
type replay struct{ bytes.Reader }

func (r *replay) Write(b []byte) (int, error)      { return len(b), nil }
func (r *replay) Close() error                     { r.Reset(nil); return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }

// FuzzRecv lets a receiver read arbitrary bytes. It returns messages, or an error of a type, and
// keeps no block.
func FuzzRecv(f *testing.F) {
	d := domain(f)
	tensor := []byte{0x96, 0, 8, 0xd4, 'S', 0, 0, 0x91, 4, 0xc0}
	f.Add(frame(make([]byte, 16), tensor, crossing.Copied, 0, 16))
	f.Add(frame(make([]byte, 8), tensor, crossing.Copied, 0, 16))
	f.Add(frame(nil, tensor, crossing.Copied, 0, 1<<40))
	f.Add(frame(nil, []byte{1}, 5, 0, 0))
	f.Add(frame(nil, []byte{1}))
	f.Fuzz(func(t *testing.T, stream []byte) {
		before := d.Stats().Blocks
		conn := link.NewConn(&replay{*bytes.NewReader(stream)}, 1<<16)
		for {
			m, blocks, err := crossing.Recv(context.Background(), conn, 'V')
			if err != nil {
				if !errors.Is(err, link.ErrClosed) && !errors.Is(err, link.ErrFrame) &&
					!errors.Is(err, codec.ErrFormat) && !errors.Is(err, arena.ErrNoSpace) &&
					!errors.Is(err, arena.ErrTooLarge) {
					t.Errorf("an error of no type: %v", err)
				}
				if !errors.Is(err, arena.ErrNoSpace) && !errors.Is(err, arena.ErrTooLarge) {
					break
				}
				continue
			}
			crossing.Check(m, blocks, func(i int) int { return i })
			crossing.Release(m.Blocks)
		}
		conn.Close()
		if n := d.Stats().Blocks; n != before {
			t.Errorf("%d blocks became %d", before, n)
		}
	})
}

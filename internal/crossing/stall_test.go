package crossing_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
)

const budget = 64 << 20

// domain returns the default domain of a test.
func domain(t testing.TB) *arena.Domain {
	t.Helper()
	d, err := arena.New(arena.Options{Budget: budget, Reserve: 256 << 20})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("shared memory needs Linux: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	arena.SetDefault(d)
	t.Cleanup(func() { arena.SetDefault(nil); d.Close() })
	return d
}

// frame is the frame of a message with blocks of three numbers each, and the bytes that follow it.
func frame(load []byte, body []byte, numbers ...uint64) []byte {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(numbers)/3))
	for _, n := range numbers {
		head = binary.LittleEndian.AppendUint64(head, n)
	}
	head = append(head, body...)
	b := append(binary.LittleEndian.AppendUint32(nil, uint32(len(head))), 'V')
	return append(append(b, head...), load...)
}

// A stalled is the stream of a peer that sends some bytes and no more. Closing end is the deadline
// of its reads, so no test waits for 30 seconds.
type stalled struct {
	said    *bytes.Reader
	end     <-chan struct{}
	waiting chan<- struct{} // gets a signal for each read that waits
}

func (s *stalled) Read(b []byte) (int, error) {
	if s.said.Len() > 0 {
		return s.said.Read(b)
	}
	s.waiting <- struct{}{}
	<-s.end
	return 0, os.ErrDeadlineExceeded
}
func (s *stalled) Write(b []byte) (int, error)      { return len(b), nil }
func (s *stalled) Close() error                     { return nil }
func (s *stalled) SetReadDeadline(time.Time) error  { return nil }
func (s *stalled) SetWriteDeadline(time.Time) error { return nil }

// Peers that have proven the key announce more than there is, and stall. All of them together have
// no more than the budget. Peers without room get an error. At the deadline all blocks are free
// again.
func TestRecv_PeersThatStallTakeNoMoreThanTheBudget(t *testing.T) {
	d := domain(t)
	const peers, announced = 8, 24 << 20 // two of them have room
	tensor := []byte{0x96, 0, 0, 0xd4, 'S', 0, 0, 0x91, 1, 0xc0}
	deadline, waiting := make(chan struct{}), make(chan struct{}, peers)
	results := make(chan error, peers)
	for range peers {
		said := frame([]byte{1, 2, 3}, tensor, crossing.Copied, 0, announced)
		conn := link.NewConn(&stalled{bytes.NewReader(said), deadline, waiting}, 1<<16)
		defer conn.Close()
		go func() {
			_, _, err := crossing.Recv(context.Background(), conn, 'V')
			results <- err
		}()
	}
	for range peers { // some fill their room, the others pass their tensor over
		<-waiting
	}
	if s := d.Stats(); s.Blocks != 2 || s.Committed > budget {
		t.Errorf("%d blocks, and %d bytes of %d", s.Blocks, s.Committed, budget)
	}
	close(deadline)
	for range peers {
		if err := <-results; !errors.Is(err, link.ErrClosed) || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
	if n := d.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
	h, err := d.Alloc(budget * 3 / 4)
	if err != nil {
		t.Fatalf("what stalled peers had is not given back: %v", err)
	}
	d.Release(h)
}

package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/test/testutil"
)

// shared is the least that can travel in shared memory: one block.
type shared struct{ h arena.Handle }

func (s shared) MarshalWire(e *codec.Encoder) error {
	e.Block(s.h)
	return e.Err()
}

func (s *shared) UnmarshalWire(d *codec.Decoder) (err error) {
	s.h, err = d.Block()
	return err
}

// bytes returns the memory, which this process holds.
func (s shared) bytes() ([]byte, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	return d.Bytes(s.h)
}

// marking is an argument whose receivers write their rank into the memory, end as How says, and
// give nothing back.
type marking struct {
	Twice [2]shared // the same block: in the message's table it stands once
	How   string
}

var markMemory = shoal.Register("markMemory", func(ctx context.Context, rank int, m marking) error {
	for i, s := range m.Twice {
		b, err := s.bytes()
		if err != nil {
			return err
		}
		b[2*rank+i] = byte(10 + rank)
	}
	if end, ok := ways[m.How]; ok {
		end(ctx)
	}
	return nil
})

func TestSpawn_ArgumentsShareMemoryAndNothingIsKept(t *testing.T) {
	d, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	before := d.Stats().Blocks
	h, err := d.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	s := shared{h}
	b, err := s.bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"", "kill", "panic", "exit"} {
		clear(b)
		err := markMemory.Spawn(testutil.Context(t), 3, marking{[2]shared{s, s}, how})
		if how == "" {
			if err != nil {
				t.Fatal(err)
			}
			if string(b[:6]) != "\x0a\x0a\x0b\x0b\x0c\x0c" {
				t.Errorf("the memory holds %v", b[:6])
			}
			continue
		}
		if _, ok := errors.AsType[*shoal.ProcessError](err); !ok {
			t.Errorf("%s: got %v", how, err)
		}
		if peer, ok := errors.AsType[*arena.PeerError](err); (how == "kill" || how == "exit") &&
			(!ok || peer.PID == 0 || peer.Seat == d.Seat()) {
			t.Errorf("%s: the participant that died is %+v", how, peer)
		}
	}
	if err := d.Release(h); err != nil {
		t.Error(err)
	}
	// another holder of the recovery lock goes first
	testutil.EventuallyNoError(t, func() error {
		if d.Stats().Blocks != before {
			return fmt.Errorf("%d blocks are in use, %d were before", d.Stats().Blocks, before)
		}
		return nil
	})
}

func TestSpawn_RefusesABlockThatIsNotHeld(t *testing.T) {
	d, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	h, err := d.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Release(h); err != nil {
		t.Fatal(err)
	}
	if err := markMemory.Spawn(testutil.Context(t), 1, marking{[2]shared{{h}, {h}}, ""}); !errors.Is(err,
		shoal.ErrArgument) || !errors.Is(err, arena.ErrStale) {
		t.Errorf("got %v, want ErrArgument and shm.ErrStale", err)
	}
}

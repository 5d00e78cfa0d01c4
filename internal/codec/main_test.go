package codec_test

import (
	"bytes"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// planOf fails the test where T cannot cross.
func planOf[T any](t testing.TB) *codec.Plan[T] {
	t.Helper()
	p, err := codec.PlanOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// encode returns the message of one value, in memory of its own.
func encode[T any](t testing.TB, v T) codec.Message {
	t.Helper()
	var e codec.Encoder
	e.Reset(nil)
	if err := planOf[T](t).Encode(&e, v); err != nil {
		t.Fatal(err)
	}
	e.Done(true)
	return e.Message()
}

// encodeError returns why v cannot be encoded.
func encodeError[T any](t testing.TB, v T, limits codec.Limits) error {
	t.Helper()
	e := codec.Encoder{Limits: limits}
	e.Reset(nil)
	err := planOf[T](t).Encode(&e, v)
	e.Done(false)
	return err
}

// decode reads a whole message.
func decode[T any](t testing.TB, m codec.Message, blocks codec.Blocks) (T, error) {
	t.Helper()
	var d codec.Decoder
	d.Reset(m, blocks)
	v, err := planOf[T](t).Decode(&d)
	if err == nil {
		err = d.Finish()
	}
	d.Done(err == nil)
	return v, err
}

// roundTrip returns what arrives of v, and fails if writing that again gives other bytes.
func roundTrip[T any](t testing.TB, v T) T {
	t.Helper()
	m := encode(t, v)
	got, err := decode[T](t, m, &holder{table: m.Blocks})
	if err != nil {
		t.Fatalf("decode %x: %v", m.Body, err)
	}
	if again := encode(t, got); !bytes.Equal(again.Body, m.Body) {
		t.Fatalf("%x arrived as %v, which is written as %x", m.Body, got, again.Body)
	}
	return got
}

// A holder counts the references taken of each block.
type holder struct {
	table []arena.Handle
	taken map[arena.Handle]int
}

func (h *holder) Take(i int) (arena.Handle, error) {
	if h.taken == nil {
		h.taken = make(map[arena.Handle]int)
	}
	h.taken[h.table[i]]++
	return h.table[i], nil
}

// A buffer is a Marshaler with a block, as a tensor is: a view of length bytes of it.
type buffer struct {
	block  arena.Handle
	length int
	closed bool
}

func (b *buffer) MarshalWire(e *codec.Encoder) error {
	e.ArrayLen(2)
	e.Block(b.block)
	e.Int(int64(b.length))
	return nil
}

func (b *buffer) UnmarshalWire(d *codec.Decoder) error {
	err := d.ArrayOf(2)
	if err != nil {
		return err
	}
	if b.block, err = d.Block(); err != nil {
		return err
	}
	d.OnDone(codec.WatcherFunc(func(kept bool) { b.closed = !kept }))
	n, err := d.Int()
	b.length = int(n)
	return err
}

func messageOf(body []byte) codec.Message { return codec.Message{Body: body} }

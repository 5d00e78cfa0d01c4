package codec_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

func TestViewsOfOneBlockShareOneEntry(t *testing.T) {
	in := []*buffer{{block: 7, length: 1}, {block: 9, length: 2}, nil, {block: 7, length: 3}}
	m := encode(t, in)
	if want := []arena.Handle{7, 9}; !slices.Equal(m.Blocks, want) {
		t.Fatalf("blocks %v, want %v", m.Blocks, want)
	}
	h := &holder{table: m.Blocks}
	got, err := decode[[]*buffer](t, m, h)
	if err != nil {
		t.Fatal(err)
	}
	if h.taken[7] != 2 || h.taken[9] != 1 {
		t.Errorf("references taken: %v", h.taken)
	}
	if got[0].block != 7 || got[1].block != 9 || got[2] != nil || got[3].block != 7 || got[3].length != 3 {
		t.Errorf("arrived %v", got)
	}
}

func TestManyBlocksKeepTheirPlaces(t *testing.T) {
	in := make([]*buffer, 1000)
	for i := range in {
		in[i] = &buffer{block: arena.Handle(i%400 + 1)}
	}
	m := encode(t, in)
	if len(m.Blocks) != 400 {
		t.Fatalf("%d blocks", len(m.Blocks))
	}
	got, err := decode[[]*buffer](t, m, &holder{table: m.Blocks})
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range got {
		if b.block != in[i].block {
			t.Fatalf("%d: block %d, want %d", i, b.block, in[i].block)
		}
	}
}

func TestResetForgetsTheBlocksBefore(t *testing.T) {
	var e codec.Encoder
	for round := range 2 {
		e.Reset(nil)
		for i := range 100 {
			e.Block(arena.Handle(1000*round + i + 1))
			e.Block(arena.Handle(1000*round + 1))
		}
		if m := e.Message(); len(m.Blocks) != 100 || m.Blocks[99] != arena.Handle(1000*round+100) {
			t.Errorf("round %d: %d blocks", round, len(m.Blocks))
		}
		e.Done(true)
	}
}

func TestTooManyBlocksIsTooLong(t *testing.T) {
	var e codec.Encoder
	e.Reset(nil)
	for i := range codec.MaxBlocks {
		e.Block(arena.Handle(i + 1))
	}
	if err := e.Err(); err != nil {
		t.Fatal(err)
	}
	e.Block(1 << 40)
	if err := e.Err(); !errors.Is(err, codec.ErrTooLong) {
		t.Errorf("one block more: %v", err)
	}
}

func TestTheZeroHandleIsNoBlock(t *testing.T) {
	if err := encodeError(t, &buffer{}, codec.Limits{}); !errors.Is(err, codec.ErrNoBlock) {
		t.Errorf("encode: %v", err)
	}
}

func TestBlocksNeedAReceiverThatTakesThem(t *testing.T) {
	m := encode(t, &buffer{block: 5})
	if _, err := decode[*buffer](t, m, nil); !errors.Is(err, codec.ErrNoBlock) {
		t.Errorf("no Blocks: %v", err)
	}
	full := errors.New("table full")
	if _, err := decode[*buffer](t, m, failing{full}); !errors.Is(err, full) {
		t.Errorf("failing Blocks: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Take(int) (arena.Handle, error) { return 0, f.err }

func TestWhatWasTakenIsGivenBackWhenTheMessageIsMalformed(t *testing.T) {
	type two struct {
		First, Second *buffer
	}
	m := encode(t, two{&buffer{block: 5, length: 1}, &buffer{block: 6, length: 2}})
	m.Body[len(m.Body)-1] = 0xc1 // the unused byte, in place of the second length
	var d codec.Decoder
	d.Reset(m, &holder{table: m.Blocks})
	var taken []*buffer
	first := &buffer{}
	if n, err := d.ArrayLen(); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	for _, b := range []*buffer{first, {}} {
		if err := b.UnmarshalWire(&d); err == nil {
			taken = append(taken, b)
		} else if !errors.Is(err, codec.ErrFormat) {
			t.Fatal(err)
		}
	}
	d.Done(false)
	if len(taken) != 1 || !first.closed {
		t.Errorf("decoded %d, first closed: %v", len(taken), first.closed)
	}
	if v, err := decode[two](t, m, &holder{table: m.Blocks}); err == nil || v != (two{}) {
		t.Errorf("Decode returned %v, %v", v, err)
	}
}

func TestDoneRunsTheHooksOnceLastFirst(t *testing.T) {
	var e codec.Encoder
	for _, sent := range []bool{true, false} {
		var got []string
		e.Reset(nil)
		e.OnDone(codec.WatcherFunc(func(ok bool) { got = append(got, "first") }))
		e.OnDone(codec.WatcherFunc(func(ok bool) {
			if ok != sent {
				t.Errorf("hook told %v", ok)
			}
			got = append(got, "second")
		}))
		e.Done(sent)
		e.Done(sent)
		if !slices.Equal(got, []string{"second", "first"}) {
			t.Errorf("hooks ran: %v", got)
		}
	}
}

func TestResetBeforeDonePanics(t *testing.T) {
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "before Done") {
			t.Errorf("panic %q", p)
		}
	}()
	var e codec.Encoder
	e.OnDone(codec.WatcherFunc(func(bool) {}))
	e.Reset(nil)
}

func TestAMessageMayHoldSeveralValues(t *testing.T) {
	var e codec.Encoder
	e.Reset(make([]byte, 0, 64))
	if err := errors.Join(planOf[string](t).Encode(&e, "train"), planOf[int](t).Encode(&e, 3),
		planOf[layer](t).Encode(&e, layer{Rate: 1})); err != nil {
		t.Fatal(err)
	}
	var d codec.Decoder
	d.Reset(e.Message(), nil)
	name, err1 := planOf[string](t).Decode(&d)
	rank, err2 := planOf[int](t).Decode(&d)
	if err := d.Finish(); !errors.Is(err, codec.ErrFormat) {
		t.Errorf("Finish before the last value: %v", err)
	}
	l, err3 := planOf[layer](t).Decode(&d)
	if err := errors.Join(err1, err2, err3, d.Finish()); err != nil || name != "train" || rank != 3 || l.Rate != 1 {
		t.Errorf("arrived %q %d %v, %v", name, rank, l, err)
	}
}

type silent struct{ Speak bool }

func (s silent) MarshalWire(e *codec.Encoder) error {
	if s.Speak {
		e.Nil()
	}
	return nil
}
func (s *silent) UnmarshalWire(d *codec.Decoder) error { d.IsNil(); return nil }

func TestMarshalWireMustWriteAValue(t *testing.T) {
	if err := encodeError(t, silent{}, codec.Limits{}); err == nil {
		t.Error("a MarshalWire that wrote nothing was accepted")
	}
	if err := encodeError(t, &silent{Speak: true}, codec.Limits{}); err == nil {
		t.Error("nil behind a pointer, which arrives as a nil pointer, was accepted")
	}
}

package codec_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
)

// A ticket is known by Custom: what holds pointers to it is written without reflection.
type ticket struct{ number int }

var errTicket = errors.New("no such ticket")

func init() {
	codec.Custom(func(t *ticket, e *codec.Encoder) error {
		if t.number < 0 {
			return errTicket
		}
		e.Int(int64(t.number))
		return nil
	}, func(t *ticket, d *codec.Decoder) error {
		n, err := d.Int()
		t.number = int(n)
		return err
	})
}

type rung int8

// A reading has a field of each kind that is written at its place, with gaps between them.
type reading struct {
	On     bool
	Level  rung
	Wide   int64
	Small  uint16
	Count  uint32
	Rate   float32
	Home   string `wire:"-"`
	Mean   float64
	Phase  complex64
	Name   string
	At     time.Time
	Inside struct {
		Byte  uint8
		Owner *ticket
		Wave  complex128
	}
	Nobody *ticket
}

func TestFlat_EveryFieldComesBack(t *testing.T) {
	in := reading{On: true, Level: -128, Wide: math.MinInt64, Small: 65535, Count: 1 << 31, Rate: 1.5, Home: "stays",
		Mean: -0.1, Phase: complex(1, -2), Name: "née", At: time.Unix(1e9, 7).UTC()}
	in.Inside.Byte, in.Inside.Owner, in.Inside.Wave = 255, &ticket{42}, complex(3, 4)
	out := roundTrip(t, in)
	if out.Inside.Owner == nil || *out.Inside.Owner != *in.Inside.Owner || out.Nobody != nil {
		t.Fatalf("got tickets %v, %v", out.Inside.Owner, out.Nobody)
	}
	in.Home, in.Inside.Owner = "", out.Inside.Owner
	if out != in {
		t.Errorf("got %+v, want %+v", out, in)
	}
	all := roundTrip(t, []reading{in, {}, in})
	if all[2].Inside.Wave != in.Inside.Wave || all[1] != (reading{At: time.Time{}.UTC()}) {
		t.Errorf("in a slice: %+v", all)
	}
}

func TestFlat_AnErrorNamesTheFieldAndItsType(t *testing.T) {
	var in struct {
		Count int32
		Deep  struct{ Owner *ticket }
	}
	in.Deep.Owner = &ticket{-1}
	err := encodeError(t, in, codec.Limits{})
	if !errors.Is(err, errTicket) || !strings.Contains(err.Error(), "field Deep: field Owner: ") {
		t.Errorf("encode: %v", err)
	}
	type wide struct{ Deep struct{ Level int } }
	type narrow struct{ Deep struct{ Level rung } }
	m := encode(t, wide{struct{ Level int }{128}})
	_, err = decode[narrow](t, m, nil)
	if !errors.Is(err, codec.ErrOverflow) || !strings.Contains(err.Error(), "field Deep: field Level: ") ||
		!strings.Contains(err.Error(), "codec_test.rung") {
		t.Errorf("decode: %v", err)
	}
}

// BenchmarkFlat is a value as a queue of plain values writes and reads it.
func BenchmarkFlat(b *testing.B) {
	type step struct {
		Epoch, Step int
		Loss        float64
		Done        bool
	}
	b.Run("int", func(b *testing.B) { benchmarkWire(b, 7, nil) })
	b.Run("struct", func(b *testing.B) { benchmarkWire(b, step{1, 2, 0.5, true}, nil) })
	b.Run("custom", func(b *testing.B) { benchmarkWire(b, struct{ In, Out *ticket }{&ticket{1}, &ticket{2}}, nil) })
}

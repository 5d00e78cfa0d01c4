package codec_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/codec"
)

// weight is written once.
type weight struct{ n int }

func init() {
	codec.CustomOnce((*weight).write, (*weight).read)
	codec.CustomOnce(func(b *bulk, e *codec.Encoder) error { return b.write(e) },
		func(b *bulk, d *codec.Decoder) error { return b.read(d) })
}

func (w *weight) write(e *codec.Encoder) error {
	e.Int(int64(w.n))
	return nil
}

func (w *weight) read(d *codec.Decoder) error {
	n, err := d.Int()
	w.n = int(n)
	return err
}

// bulk is another that is.
type bulk struct{ weight }

type model struct {
	First, Tied *weight
	All         []*weight
	Other       *bulk
	Own         weight
}

func TestCustomOnce_ArrivesOnce(t *testing.T) {
	a, b := &weight{7}, &weight{8}
	got := roundTrip(t, &model{First: a, Tied: a, All: []*weight{b, nil, a, b}, Other: &bulk{weight{9}}, Own: *a})
	if got.First != got.Tied || got.All[2] != got.First || got.All[0] != got.All[3] ||
		got.All[0] == got.First || got.All[1] != nil {
		t.Errorf("pointers came apart: %+v", got)
	}
	if got.First.n != 7 || got.All[0].n != 8 || got.Other.n != 9 || got.Own.n != 7 {
		t.Errorf("values were lost: %+v", got)
	}
	if again := roundTrip(t, []*weight{a, b}); again[0].n != 7 || again[1].n != 8 {
		t.Errorf("a message remembers the one before: %+v", again)
	}
}

func TestCustomOnce_OfManyHasLongNumbers(t *testing.T) {
	var all []*weight
	for i := range 300 {
		all = append(all, &weight{i})
	}
	got := roundTrip(t, append(all, all...))
	for i := range all {
		if got[i] != got[300+i] || got[i].n != i {
			t.Fatalf("pointer %d: %p and %p", i, got[i], got[300+i])
		}
	}
}

func TestCustomOnce_RefusesAWrongNumber(t *testing.T) {
	for name, body := range map[string]string{
		"of nothing":      "91 d44100",
		"of the future":   "92 07 d44101",
		"of another type": "95 07 d44100 90 d44100 07",
		"far too high":    "92 07 d641ffffffff",
		"cut off":         "92 07 d441",
		"of eight bytes":  "92 07 d7410000000000000000",
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(body, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if name == "of another type" {
			_, err = decode[*model](t, codec.Message{Body: b}, nil)
		} else {
			_, err = decode[[]*weight](t, codec.Message{Body: b}, nil)
		}
		if !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

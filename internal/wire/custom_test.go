package wire_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/internal/wire"
)

// secret travels as the functions say that Custom was given.
type secret struct{ text string }

// mute writes nothing.
type mute struct{}

func init() {
	wire.Custom(func(s *secret, e *wire.Encoder) error { e.String(s.text); return nil },
		func(s *secret, d *wire.Decoder) (err error) { s.text, err = d.String(); return err })
	wire.Custom(func(*mute, *wire.Encoder) error { return nil }, func(*mute, *wire.Decoder) error { return nil })
}

func TestCustom_WritesAndReadsAValueWhereverItStands(t *testing.T) {
	type pair struct {
		One  secret
		More []*secret
	}
	got := roundTrip(t, pair{secret{"a"}, []*secret{{"b"}, nil}})
	if got.One.text != "a" || got.More[0].text != "b" || got.More[1] != nil {
		t.Errorf("%+v", got)
	}
}

func TestCustom_RefusesWhatWritesNothing(t *testing.T) {
	var e wire.Encoder
	e.Reset(nil)
	if err := wire.Encode(&e, mute{}); !errors.Is(err, wire.ErrFormat) {
		t.Error(err)
	}
	e.Done(false)
}

func TestCustom_PanicsOnceThereIsAPlan(t *testing.T) {
	type late struct{ N int }
	roundTrip(t, late{1})
	defer func() {
		if recover() == nil {
			t.Error("the plan that there is would not know of it")
		}
	}()
	wire.Custom(func(*late, *wire.Encoder) error { return nil }, func(*late, *wire.Decoder) error { return nil })
}

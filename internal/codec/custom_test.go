package codec_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/internal/codec"
)

// secret travels as the functions say that Custom was given.
type secret struct{ text string }

// mute writes nothing.
type mute struct{}

func init() {
	codec.Custom(func(s *secret, e *codec.Encoder) error { e.String(s.text); return nil },
		func(s *secret, d *codec.Decoder) (err error) { s.text, err = d.String(); return err })
	codec.Custom(func(*mute, *codec.Encoder) error { return nil }, func(*mute, *codec.Decoder) error { return nil })
}

func TestCustom_WritesAndReadsAValueWhereverItStands(t *testing.T) {
	type readPair struct {
		One  secret
		More []*secret
	}
	got := roundTrip(t, readPair{secret{"a"}, []*secret{{"b"}, nil}})
	if got.One.text != "a" || got.More[0].text != "b" || got.More[1] != nil {
		t.Errorf("%+v", got)
	}
}

func TestCustom_RefusesWhatWritesNothing(t *testing.T) {
	var e codec.Encoder
	e.Reset(nil)
	if err := codec.Encode(&e, mute{}); !errors.Is(err, codec.ErrFormat) {
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
	codec.Custom(func(*late, *codec.Encoder) error { return nil }, func(*late, *codec.Decoder) error { return nil })
}

// A letter has methods that are not exported, so only CustomMethods can find them.
type letter interface {
	post(e *codec.Encoder) error
	open(d *codec.Decoder) error
}

type sealed[T any] struct{ value T }

func (s *sealed[T]) post(e *codec.Encoder) error { return codec.Encode(e, s.value) }

func (s *sealed[T]) open(d *codec.Decoder) (err error) {
	s.value, err = codec.Decode[T](d)
	return err
}

// blank writes nothing.
type blank struct{}

func (*blank) post(*codec.Encoder) error { return nil }
func (*blank) open(*codec.Decoder) error { return nil }

func init() { codec.CustomMethods(letter.post, letter.open) }

func TestCustomMethods_EveryInstanceOfAGenericTypeCrosses(t *testing.T) {
	type bundle struct {
		Number sealed[int]
		Texts  []*sealed[string]
	}
	got := roundTrip(t, bundle{sealed[int]{7}, []*sealed[string]{{"a"}, nil}})
	if got.Number.value != 7 || got.Texts[0].value != "a" || got.Texts[1] != nil {
		t.Errorf("%+v", got)
	}
	if got := roundTrip(t, struct{ sealed[string] }{sealed[string]{"promoted"}}); got.value != "promoted" {
		t.Errorf("%+v", got)
	}
}

func TestCustomMethods_RefusesValuesThatWouldBeLost(t *testing.T) {
	refused[struct {
		sealed[int]
		Name string
	}](t, "promoted from the embedded sealed", "give that field a name")
	var e codec.Encoder
	e.Reset(nil)
	if err := codec.Encode(&e, blank{}); !errors.Is(err, codec.ErrFormat) {
		t.Errorf("Encode of a value that writes nothing: got %v, want %v", err, codec.ErrFormat)
	}
	e.Done(false)
}

type early struct{ N int }

func (*early) writeEarly(*codec.Encoder) error { return nil }
func (*early) readEarly(*codec.Decoder) error  { return nil }

func TestCustomMethods_PanicsOnceThereIsAPlan(t *testing.T) {
	roundTrip(t, early{1})
	type methods interface {
		writeEarly(e *codec.Encoder) error
		readEarly(d *codec.Decoder) error
	}
	defer func() {
		if recover() == nil {
			t.Error("CustomMethods after a plan of early did not panic")
		}
	}()
	codec.CustomMethods(methods.writeEarly, methods.readEarly)
}

func TestEncodeValue_IsReadByDecode(t *testing.T) {
	var e codec.Encoder
	e.Reset(nil)
	defer e.Done(false)
	if err := codec.EncodeValue(&e, &sealed[int]{5}); err != nil {
		t.Fatal(err)
	}
	var d codec.Decoder
	d.Reset(e.Message(), nil)
	defer d.Done(false)
	if got, err := codec.Decode[*sealed[int]](&d); err != nil || got.value != 5 {
		t.Errorf("Decode = %+v, %v", got, err)
	}
	if err := codec.EncodeValue(&e, func() {}); !errors.Is(err, codec.ErrType) {
		t.Errorf("EncodeValue of a function: got %v, want %v", err, codec.ErrType)
	}
}

package codec_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

var shapeTags = &codec.Tags{Type: "shape", Fields: []int{1, 2}}

// shapeOf encodes a value with any tag and fields.
func shapeOf(tag uint64, fields ...uint64) codec.Message {
	var e codec.Encoder
	e.ArrayLen(1 + len(fields))
	e.Uint(tag)
	for _, f := range fields {
		e.Uint(f)
	}
	return e.Message()
}

func TestTags_TheTagAndNotTheLengthDecides(t *testing.T) {
	for _, c := range []struct {
		m    codec.Message
		tag  int
		want error
	}{
		{shapeOf(0, 7), 0, nil},
		{shapeOf(1, 7, 8), 1, nil},
		{shapeOf(0, 7, 8), 0, codec.ErrFormat},
		{shapeOf(1, 7), 0, codec.ErrFormat},
		{shapeOf(2, 7), 0, codec.ErrTag},
		{shapeOf(1<<40, 7), 0, codec.ErrTag},
		{messageOf([]byte{0x90}), 0, codec.ErrFormat},
		{messageOf([]byte{0x92, 0xa1, 'x', 7}), 0, codec.ErrFormat},
		{messageOf([]byte{7}), 0, codec.ErrFormat},
	} {
		var d codec.Decoder
		d.Reset(c.m, nil)
		tag, err := d.Tag(shapeTags)
		if tag != c.tag || !errors.Is(err, c.want) {
			t.Errorf("%x: tag %d, %v; want %d, %v", c.m.Body, tag, err, c.tag, c.want)
		}
		if err != nil && !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%x: %v is no ErrFormat", c.m.Body, err)
		}
		d.Done(false)
	}
}

func TestTags_AnUnknownTagIsNamedInTheError(t *testing.T) {
	m := shapeOf(2, 7)
	var d codec.Decoder
	d.Reset(m, nil)
	_, err := d.Tag(shapeTags)
	if err == nil || !strings.Contains(err.Error(), "shape has tag 2") {
		t.Errorf("%v", err)
	}
}

func TestParcel_ArrivesWithItsBlocks(t *testing.T) {
	for _, want := range []codec.Message{
		{Body: []byte{}}, {Body: []byte("body")}, {Body: []byte("body"), Blocks: []arena.Handle{5, 6, 7}},
	} {
		var e codec.Encoder
		if err := e.Parcel(want); err != nil {
			t.Fatal(err)
		}
		m := e.Message()
		var d codec.Decoder
		d.Reset(m, &holder{table: m.Blocks})
		got, err := d.Parcel(func(h arena.Handle) { t.Errorf("%v is released", h) })
		if err != nil || string(got.Body) != string(want.Body) || !slices.Equal(got.Blocks, want.Blocks) {
			t.Errorf("%v arrived as %v, %v", want, got, err)
		}
		if err := d.Finish(); err != nil {
			t.Error(err)
		}
		d.Done(true)
	}
}

func TestParcel_ReleasesWhatAMalformedMessageHeld(t *testing.T) {
	var e codec.Encoder
	if err := e.Parcel(codec.Message{Body: []byte{1}, Blocks: []arena.Handle{5, 6, 7}}); err != nil {
		t.Fatal(err)
	}
	m := e.Message()
	m.Body[len(m.Body)-1] = 9 // there is no such block
	var released []arena.Handle
	var d codec.Decoder
	d.Reset(m, &holder{table: m.Blocks})
	if got, err := d.Parcel(func(h arena.Handle) { released = append(released, h) }); !errors.Is(err, codec.ErrFormat) {
		t.Errorf("%v, %v", got, err)
	}
	d.Done(false)
	if !slices.Equal(released, []arena.Handle{5, 6}) {
		t.Errorf("%v are released, want 5 and 6", released)
	}
}

package codec_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
)

func TestAnyKeepsTheType(t *testing.T) {
	checkRoundTrip[any](t, nil, true, 1, int8(1), uint64(1), float32(1), 1.0, complex64(1), "x", []byte("x"), []int{1},
		[]float32{1}, []string{"x"}, []any{nil, 1}, map[string]any{"x": []any{}}, time.Second,
		layer{Name: "a"}, &tree{Value: 1})
	checkRoundTrip(t, map[string]any{"rate": 0.1, "epochs": 3, "layers": []any{layer{}, &tree{}}})
}

func TestAnyOfATypeNobodyRegisteredIsAnError(t *testing.T) {
	type stranger struct{ N int }
	if err := encodeError[any](t, stranger{}, codec.Limits{}); !errors.Is(err, codec.ErrUnknownType) {
		t.Errorf("encode: %v", err)
	}
	if err := encodeError[any](t, func() {}, codec.Limits{}); !errors.Is(err, codec.ErrUnknownType) ||
		!errors.Is(err, codec.ErrType) {
		t.Errorf("what cannot be registered: %v", err)
	}
	var e codec.Encoder
	e.ArrayLen(2)
	e.String("other.Type")
	e.ArrayLen(1)
	e.Int(5)
	if _, err := decode[any](t, e.Message(), nil); !errors.Is(err, codec.ErrUnknownType) {
		t.Errorf("decode: %v", err)
	}
}

func TestABlockInAnAnyIsTaken(t *testing.T) {
	m := encode(t, []any{&buffer{block: 3, length: 1}, 5})
	h := &holder{table: m.Blocks}
	if _, err := decode[[]any](t, m, h); err != nil || h.taken[3] != 1 {
		t.Errorf("taken %v, %v", h.taken, err)
	}
}

package codec_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/codec"
)

func TestSpans_SayWhichBytesAreUsed(t *testing.T) {
	tensor := func(block byte, rest ...byte) []byte {
		return append([]byte{0x96, 0, 8, 0xd4, 'S', block}, rest...) // float32
	}
	memory := func(block, size byte) []byte { return []byte{0x93, 0, 0xd4, 'S', block, size} }
	queue := func(block byte) []byte { return []byte{0x92, 0, 0xd4, 'S', block} }
	for name, c := range map[string]struct {
		body  []byte
		spans []codec.Span
		ok    []bool
	}{
		"a tensor":         {tensor(0, 0, 0x92, 2, 3, 0xc0), []codec.Span{{0, 24}, {}, {}}, []bool{true, false, false}},
		"behind an offset": {tensor(1, 4, 0x91, 3, 0xc0), []codec.Span{{}, {16, 28}, {}}, []bool{false, true, false}},
		"with strides": {tensor(0, 1, 0x92, 2, 2, 0x92, 10, 3), []codec.Span{{4, 60}, {}, {}},
			[]bool{true, false, false}},
		"of one element": {tensor(0, 2, 0x90, 0xc0), []codec.Span{{8, 12}, {}, {}}, []bool{true, false, false}},
		"of no element":  {tensor(0, 9, 0x92, 5, 0, 0xc0), []codec.Span{{}, {}, {}}, []bool{true, false, false}},
		"a Memory":       {memory(2, 9), []codec.Span{{}, {}, {0, 9}}, []bool{false, false, true}},
		"two of one": {slices.Concat(tensor(0, 2, 0x90, 0xc0), tensor(0, 4, 0x90, 0xc0)),
			[]codec.Span{{8, 20}, {}, {}}, []bool{true, false, false}},
		"a queue": {queue(0), []codec.Span{{}, {}, {}}, []bool{false, false, false}},
		"and what is both": {slices.Concat(memory(0, 9), queue(0)), []codec.Span{{0, 9}, {}, {}},
			[]bool{false, false, false}},
		"beyond any number": {tensor(0, 0, 0x92, 0xce, 255, 255, 255, 255, 0xce, 255, 255, 255, 255, 0xc0),
			[]codec.Span{{}, {}, {}}, []bool{false, false, false}},
	} {
		spans, ok, err := codec.Spans(codec.Message{Body: c.body, Blocks: threeBlocks})
		if err != nil || !slices.Equal(spans, c.spans) || !slices.Equal(ok, c.ok) {
			t.Errorf("%s: %v, %v, %v, want %v, %v", name, spans, ok, err, c.spans, c.ok)
		}
	}
}

// FuzzSpans looks for blocks in arbitrary bytes. What it says can be copied has a place that can be
// copied, and the bytes name it.
func FuzzSpans(f *testing.F) {
	f.Add([]byte{0x96, 0, 8, 0xd4, 'S', 0, 0, 0x92, 2, 3, 0xc0})
	f.Add([]byte{0x96, 0, 11, 0xd4, 'S', 2, 1, 0x92, 2, 2, 0x92, 10, 3})
	f.Add([]byte{0x92, 0x93, 0, 0xd4, 'S', 1, 9, 0x92, 0, 0xd4, 'S', 1})
	f.Add([]byte{0x96, 0, 8, 0xd4, 'S', 0, 0, 0x92, 0xce, 255, 255, 255, 255, 0xce, 255, 255, 255, 255, 0xc0})
	f.Add([]byte{0x81, 0xa1, 'x', 0x96, 0, 8, 0xd5, 'S', 0, 1, 0, 0x90, 0xc0})
	f.Fuzz(func(t *testing.T, body []byte) {
		spans, ok, err := codec.Spans(codec.Message{Body: body, Blocks: threeBlocks})
		if err != nil {
			if !errors.Is(err, codec.ErrFormat) {
				t.Errorf("an error of no type: %v", err)
			}
			return
		}
		if len(spans) != len(threeBlocks) || len(ok) != len(threeBlocks) {
			t.Fatalf("%d spans, %d of them good, of %d blocks", len(spans), len(ok), len(threeBlocks))
		}
		for i, s := range spans {
			if s.Begin > s.End || s.End > 16<<48 || s.End == 0 && s.Begin != 0 {
				t.Errorf("block %d: bytes %d to %d", i, s.Begin, s.End)
			}
			if ok[i] && !slices.Contains(body, byte(i)) {
				t.Errorf("block %d is copied, and nothing names it", i)
			}
		}
	})
}

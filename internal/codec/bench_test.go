package codec_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A task is the argument of five fields of the comparisons.
type task struct {
	Name    string
	Epochs  int
	Rate    float64
	Shuffle bool
	Sizes   []int
}

var oneTask = task{"train", 3, 0.01, true, []int{784, 128, 10}}

// BenchmarkTask encodes and decodes one task. A message of a queue stands alone, so the fair gob is
// the fresh one; the long-lived stream is what gob could do if no message were ever lost or read
// out of order.
//
// AMD EPYC, two cores, under other load, Go 1.26, the middle of three runs:
//
//	wire          0.37 µs    25 bytes     2 allocations (the string and the slice of the result)
//	gob-fresh    23.5  µs   124 bytes   197 allocations
//	gob-stream    1.04 µs    34 bytes     5 allocations
//	json          2.6  µs    75 bytes    11 allocations
func BenchmarkTask(b *testing.B) {
	b.Run("wire", func(b *testing.B) { benchmarkWire(b, oneTask, nil) })
	b.Run("gob-fresh", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var stream bytes.Buffer
			var out task
			if err := gob.NewEncoder(&stream).Encode(&oneTask); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(stream.Len()))
			if err := gob.NewDecoder(&stream).Decode(&out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gob-stream", func(b *testing.B) {
		var stream bytes.Buffer
		enc, dec := gob.NewEncoder(&stream), gob.NewDecoder(&stream)
		b.ReportAllocs()
		for b.Loop() {
			var out task
			if err := enc.Encode(&oneTask); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(stream.Len()))
			if err := dec.Decode(&out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text, err := json.Marshal(&oneTask)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			var out task
			if err := json.Unmarshal(text, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchmarkWire encodes into the same memory again and again, as a queue does.
func benchmarkWire[T any](b *testing.B, v T, blocks codec.Blocks) {
	p := planOf[T](b)
	var e codec.Encoder
	var d codec.Decoder
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		e.Reset(buf)
		if err := p.Encode(&e, v); err != nil {
			b.Fatal(err)
		}
		m := e.Message()
		buf = m.Body
		b.SetBytes(int64(len(m.Body)))
		e.Done(true)
		d.Reset(m, blocks)
		if _, err := p.Decode(&d); err != nil {
			b.Fatal(err)
		}
		d.Done(true)
	}
}

// A keeper takes blocks without counting.
type keeper struct{ arena.Handle }

func (k keeper) Take(int) (arena.Handle, error) { return k.Handle, nil }

// A view marshals itself as a tensor does, without a hook.
type view struct {
	block  arena.Handle
	length int64
}

func (v *view) MarshalWire(e *codec.Encoder) error {
	e.ArrayLen(2)
	e.Block(v.block)
	e.Int(v.length)
	return nil
}

func (v *view) UnmarshalWire(d *codec.Decoder) (err error) {
	if err = d.ArrayOf(2); err != nil {
		return err
	}
	if v.block, err = d.Block(); err != nil {
		return err
	}
	v.length, err = d.Int()
	return err
}

type batch struct{ Images *view }

// A quiet view marshals itself by methods that only CustomMethods finds.
type quietView struct{ view }

func (v *quietView) writeQuiet(e *codec.Encoder) error { return v.view.MarshalWire(e) }
func (v *quietView) readQuiet(d *codec.Decoder) error  { return v.view.UnmarshalWire(d) }

type quiet interface {
	writeQuiet(e *codec.Encoder) error
	readQuiet(d *codec.Decoder) error
}

func init() { codec.CustomMethods(quiet.writeQuiet, quiet.readQuiet) }

// BenchmarkHandle is the hot path of a queue of tensors.
func BenchmarkHandle(b *testing.B) {
	v := &view{block: 7, length: 1 << 20}
	b.Run("pointer", func(b *testing.B) { benchmarkWire(b, v, keeper{7}) })
	b.Run("struct", func(b *testing.B) { benchmarkWire(b, batch{v}, keeper{7}) })
	b.Run("value", func(b *testing.B) { benchmarkWire(b, *v, keeper{7}) })
	b.Run("methods", func(b *testing.B) { benchmarkWire(b, &quietView{*v}, keeper{7}) })
}

func BenchmarkSlice(b *testing.B) {
	b.Run("float64-1000", func(b *testing.B) { benchmarkWire(b, make([]float64, 1000), nil) })
	b.Run("bytes-64KiB", func(b *testing.B) { benchmarkWire(b, make([]byte, 1<<16), nil) })
	b.Run("map-100", func(b *testing.B) {
		m := make(map[int]time.Duration)
		for i := range 100 {
			m[i] = time.Duration(i)
		}
		benchmarkWire(b, m, nil)
	})
}

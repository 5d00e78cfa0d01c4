package pool

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
)

// FuzzPool_Messages feeds hostile bytes to whatever reads them: the messages, and the values in
// their payloads.
func FuzzPool_Messages(f *testing.F) {
	calls, replies := must(codec.PlanOf[call]()), must(codec.PlanOf[reply]())
	args, err := packValues(tiny.in, []int{1, 2, 3})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded(f, calls, call{id: 1, fn: "tiny", n: 3, args: args}))
	f.Add(encoded(f, replies, reply{id: 1, took: time.Second, results: args}))
	f.Add(encoded(f, replies, reply{id: 2, index: 1, err: context.Canceled}))
	f.Fuzz(func(t *testing.T, body []byte) {
		if c, err := decoded(calls, body); err == nil {
			again, err := decoded(calls, encoded(t, calls, c))
			if err != nil || !reflect.DeepEqual(again, c) {
				t.Errorf("%+v comes back as %+v, %v", c, again, err)
			}
			c.fn, c.n = "tiny", min(c.n, 1000)
			if r := performCall(t.Context(), c); r.err == nil && len(r.results.body) < c.n {
				t.Errorf("%d results in %d bytes", c.n, len(r.results.body))
			}
		}
		if r, err := decoded(replies, body); err == nil {
			unpackValues(tiny.out, r.results, make([]int, 3))
		}
	})
}

func encoded[T any](t testing.TB, p *codec.Plan[T], v T) []byte {
	var e codec.Encoder
	e.Reset(nil)
	err := p.Encode(&e, v)
	e.Done(err == nil)
	if err != nil {
		t.Fatal(err)
	}
	return e.Message().Body
}

func decoded[T any](p *codec.Plan[T], body []byte) (T, error) {
	var d codec.Decoder
	d.Reset(codec.Message{Body: body}, nil)
	v, err := p.Decode(&d)
	if err == nil {
		err = d.Finish()
	}
	d.Done(err == nil)
	return v, err
}

// A chunk of which the bytes say less or more than its count is an error of its task, and nothing
// worse.
func TestPool_RefusesACallThatContradictsItself(t *testing.T) {
	args, err := packValues(tiny.in, []int{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 2, 4, -1, 1 << 60} {
		r := performCall(t.Context(), call{id: 1, fn: "tiny", n: n, args: args})
		if !errors.Is(r.err, codec.ErrFormat) {
			t.Errorf("%d values of 3: %+v", n, r)
		}
	}
	if r := performCall(t.Context(), call{id: 1, fn: "nobody", n: 3, args: args}); r.err == nil {
		t.Error("an unknown function runs")
	}
	_, err = unpackValues(tiny.out, payload{body: args.body[:1]}, make([]int, 3))
	if !errors.Is(err, codec.ErrFormat) {
		t.Errorf("half a reply: %v", err)
	}
}

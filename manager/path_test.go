package manager

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/codec"
)

// BenchmarkPath is what a call costs besides its two messages.
func BenchmarkPath(b *testing.B) {
	srv, err := newServer(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.serveLanes() }()
	defer func() { srv.end(); <-ended }()
	m, err := srv.openManager()
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	l, err := NewList(b.Context(), m, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	s := &served{s: srv}
	requests, replies := must(codec.PlanOf[request]()), must(codec.PlanOf[reply]())
	var e codec.Encoder
	var d codec.Decoder
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		a := encodeArg(0)
		e.Reset(buf)
		requests.Encode(&e, request{Object: l.ref.id, Method: "get", Owner: l.ref.owner, Args: []item{a.item}})
		e.Done(true)
		d.Reset(e.Message(), nil)
		s.req, _ = requests.Decode(&d)
		d.Done(true)
		var r reply
		r.Results, r.Err = s.performCall()
		e.Reset(buf)
		replies.Encode(&e, r)
		e.Done(true)
		d.Reset(e.Message(), nil)
		r, _ = replies.Decode(&d)
		d.Done(true)
		a.releaseArg(true)
		if v, err := oneResult[int](answer{l.ref.c, r.Results, r.Err}); v != 1 {
			b.Fatal(v, err)
		}
	}
}

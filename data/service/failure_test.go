package service_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/ipc"
)

// listen serves in this process.
func listen(t *testing.T, s numbers, o service.HostOptions, change func(o *data.Options)) *service.Host {
	t.Helper()
	return listenTo(t, loader(s, change), o)
}

// listenTo serves a Loader, and closes it at the end.
func listenTo(t *testing.T, l *data.Loader, o service.HostOptions) *service.Host {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	o.Key = key
	h, err := service.Listen(l, "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestDial_RefusesAHostThatIsWrong(t *testing.T) {
	good := listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil).Addr()
	named := listen(t, numbers{40, 0, -1}, service.HostOptions{Name: "another"}, nil).Addr()
	other := func(s numbers, change func(o *data.Options)) string {
		return listen(t, s, service.HostOptions{}, change).Addr()
	}
	for name, c := range map[string]struct {
		addr string
		key  string
		err  error
		text string
	}{
		"key": {good, "another key", ipc.ErrKey, "give all data hosts and trainers the same key"},
		"seed": {other(numbers{40, 0, -1}, func(o *data.Options) { o.Seed = 8 }), "",
			service.ErrMismatch, "seed"},
		"samples": {other(numbers{44, 0, -1}, nil), "", service.ErrMismatch, "number of samples"},
		"batch size": {other(numbers{40, 0, -1}, func(o *data.Options) { o.BatchSize = 8 }), "", service.ErrMismatch,
			"batch size"},
		"order": {other(numbers{40, 0, -1}, func(o *data.Options) { o.Shuffle = false }), "", service.ErrMismatch,
			"hash of the order"},
		"sample": {other(numbers{40, 0, -1}, func(o *data.Options) { o.Transform = data.TransformFunc(plusOne) }), "",
			service.ErrMismatch, "first sample"},
		"name":    {named, "", service.ErrMismatch, "name or first sample"},
		"no host": {stranger(t, "HTTP/1.0 400 Bad Request\r\n\r\n"), "", ipc.ErrPeer, "service.Listen"},
	} {
		t.Run(name, func(t *testing.T) {
			o := service.Options{Key: key, Patience: patience}
			addrs := []string{good, c.addr}
			if c.key != "" {
				o.Key, addrs = []byte(c.key), addrs[:1]
			}
			for turn := range 2 { // whichever was reached first
				_, err := service.Dial(t.Context(), o, addrs...)
				var host *service.HostError
				if !errors.Is(err, c.err) || !errors.As(err, &host) || host.Advice == "" ||
					!strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), c.addr) {
					t.Errorf("turn %d: %v", turn, err)
				}
			}
		})
	}
}

// stranger is a server of something else.
func stranger(t *testing.T, says string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, says)
			c.Close()
		}
	}()
	return l.Addr().String()
}

func TestDial_OtherVersion(t *testing.T) {
	h := listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil)
	defer service.SetVersion(h, 99)()
	_, err := service.Dial(t.Context(), service.Options{Key: key, Patience: patience}, h.Addr())
	if !errors.Is(err, ipc.ErrPeer) || !strings.Contains(err.Error(), "version 99") ||
		!strings.Contains(err.Error(), h.Addr()) {
		t.Errorf("%v", err)
	}
}

func TestDial_NobodyIsThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, err = service.Dial(t.Context(), service.Options{Key: key}, addr)
	if !errors.Is(err, service.ErrNoHost) || !errors.Is(err, syscall.ECONNREFUSED) ||
		!strings.Contains(err.Error(), addr) {
		t.Errorf("%v", err)
	}
	good := listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil).Addr()
	if got := epoch(t, dial(t, service.Options{}, addr, good).Batches(t.Context()), nil); len(got) != 10 {
		t.Errorf("%d batches of the host that is there", len(got))
	}
}

func TestOptions_ThatDoNotFit(t *testing.T) {
	h := listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil)
	for _, o := range []service.Options{
		{}, {Key: key, Rank: 2, World: 2}, {Key: key, Rank: -1}, {Key: key, Prefetch: -1}, {Key: key, World: -1},
		{Key: key, Patience: -1}, {Key: key, Prefetch: 1 << 20},
	} {
		if _, err := service.Dial(t.Context(), o, h.Addr()); !errors.Is(err, service.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := service.Dial(t.Context(), service.Options{Key: key}); !errors.Is(err, service.ErrOptions) {
		t.Errorf("no address: %v", err)
	}
	part := loader(numbers{40, 0, -1}, func(o *data.Options) { o.World = 2 })
	defer part.Close()
	whole := loader(numbers{40, 0, -1}, nil)
	defer whole.Close()
	for _, c := range []struct {
		l *data.Loader
		o service.HostOptions
	}{{part, service.HostOptions{Key: key}}, {whole, service.HostOptions{}},
		{whole, service.HostOptions{Key: key, Cache: -1}}} {
		_, err := service.Listen(c.l, "127.0.0.1:0", c.o)
		if !errors.Is(err, service.ErrOptions) {
			t.Errorf("%v", err)
		}
	}
}

// TestLoader_BadSample: what one host cannot load, another is asked for. If none can, the error
// names a host and the sample, and is the data set's.
func TestLoader_BadSample(t *testing.T) {
	named := service.HostOptions{Name: "numbers"}
	bad := listen(t, numbers{40, 0, 17}, named, nil)
	good := listen(t, numbers{40, 0, -1}, named, nil)
	l := dial(t, service.Options{}, bad.Addr(), good.Addr())
	for n := 0; bad.Stats().Failed == 0; n++ { // each asks one of the two for it, which comes first
		once(t, 40, epoch(t, l.Batches(t.Context()), nil))
		if n == 200 {
			t.Fatal("the host was not asked for its bad sample")
		}
	}
	l = dial(t, service.Options{}, bad.Addr())
	var last error
	for b, err := range l.Batches(t.Context()) {
		if last = err; err == nil {
			b.Close()
		}
	}
	var host *service.HostError
	var sample *data.SampleError
	if !errors.As(last, &host) || host.Host != bad.Addr() || !errors.As(last, &sample) || sample.Index != 17 ||
		!errors.Is(last, errBad) {
		t.Errorf("%v", last)
	}
	skipping := listen(t, numbers{40, 0, 17}, named,
		func(o *data.Options) { o.Skip = func(*data.SampleError) bool { return true } })
	n := 0
	for _, b := range epoch(t, dial(t, service.Options{}, skipping.Addr()).Batches(t.Context()), nil) {
		n += len(b.samples)
	}
	if n != 39 {
		t.Errorf("%d samples without the one that is skipped", n)
	}
}

// TestHost_SlowTrainer: a trainer that does not take its batches makes a host hold no more than it
// has asked for, while another one goes on.
func TestHost_SlowTrainer(t *testing.T) {
	h := listen(t, numbers{400, 0, -1}, service.HostOptions{Ahead: 2}, nil)
	slow := dial(t, service.Options{Prefetch: 3}, h.Addr())
	for b, err := range slow.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		quick := dial(t, service.Options{}, h.Addr())
		once(t, 400, epoch(t, quick.Batches(t.Context()), nil))
		quick.Close()
		break
	}
	sent := slow.Stats().Hosts[0].Batches
	if sent > 4 {
		t.Errorf("%d batches were sent to a trainer that has taken one and asks for 3 ahead", sent)
	}
	if s := h.Stats(); s.MostHeld == 0 || s.MostHeld > 2*2*4*(8+4) {
		t.Errorf("the host held %d bytes, of batches of 48, 2 for each of 2 trainers", s.MostHeld)
	}
}

// TestLoader_EndsInTheMiddle: breaking off, a context that ends and Close leave nothing behind, and
// the host makes nothing that nobody wants.
func TestLoader_EndsInTheMiddle(t *testing.T) {
	h := listen(t, numbers{4000, 200 * time.Microsecond, -1}, service.HostOptions{}, nil)
	l := dial(t, service.Options{Prefetch: 8}, h.Addr())
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		break
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for b, err := range l.Batches(ctx) {
		if last = err; err == nil {
			b.Close()
			cancel(errBad)
		}
	}
	if !errors.Is(last, errBad) {
		t.Errorf("the context's end: %v", last)
	}
	for b, err := range l.Batches(t.Context()) {
		if last = err; err == nil {
			b.Close()
			l.Close()
		}
	}
	if !errors.Is(last, data.ErrClosed) {
		t.Errorf("Close: %v", last)
	}
	for _, err := range l.Batches(t.Context()) {
		last = err
	}
	if !errors.Is(last, data.ErrClosed) {
		t.Errorf("after Close: %v", last)
	}
	if n := h.Stats().Batches; n > 40 {
		t.Errorf("%d batches were made for three loops that ended after one each", n)
	}
}

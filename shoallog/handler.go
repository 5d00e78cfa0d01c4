package shoallog

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/shoal-mp/shoal"
)

// NewHandler returns a Handler that passes records to h with the attributes function, rank and pid,
// outside of any group. The values are those [shoal.Current] returns when a record is logged. A
// worker that starts before its job is known therefore logs another function and rank until then.
func NewHandler(h slog.Handler) slog.Handler { return &handler{base: h} }

// A handler creates the handler for the current process from base when a record is logged.
type handler struct {
	base  slog.Handler
	steps []func(slog.Handler) slog.Handler // WithAttrs and WithGroup calls to repeat on base
	last  atomic.Pointer[derived]
}

// A derived is the handler for one process identity.
type derived struct {
	slog.Handler
	name      string
	rank, pid int
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.base.Enabled(ctx, l) }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	i := shoal.Current()
	d := h.last.Load()
	if d == nil || d.name != i.Name || d.rank != i.Rank || d.pid != i.PID {
		d = h.derive(i)
		h.last.Store(d)
	}
	return d.Handle(ctx, r)
}

func (h *handler) derive(i shoal.Identity) *derived {
	out := h.base.WithAttrs([]slog.Attr{
		slog.String("function", i.Name), slog.Int("rank", i.Rank), slog.Int("pid", i.PID)})
	for _, step := range h.steps {
		out = step(out)
	}
	return &derived{out, i.Name, i.Rank, i.PID}
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.derivedHandler(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" { // as the contract of slog.Handler requires
		return h
	}
	return h.derivedHandler(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

func (h *handler) derivedHandler(step func(slog.Handler) slog.Handler) slog.Handler {
	return &handler{base: h.base, steps: append(h.steps[:len(h.steps):len(h.steps)], step)}
}

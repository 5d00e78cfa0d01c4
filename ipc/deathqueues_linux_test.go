package ipc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/ipc"
)

type putter interface {
	Put(context.Context, load) error
}

type getter interface {
	Get(context.Context) (load, error)
}

// connEnd makes a pipe look like the ends of a queue.
type connEnd struct{ *ipc.PipeEnd[load, load] }

func (c connEnd) Get(ctx context.Context) (load, error) { return c.Recv(ctx) }
func (c connEnd) Put(ctx context.Context, l load) error { return c.Send(ctx, l) }

// stuck has this process stop in the middle of the next copy.
func stuck(v victimPart) {
	midway = func(*load) { v.there(); select {} }
}

func getAll(ctx context.Context, in getter) error {
	return until(func() error { _, err := in.Get(ctx); return err })
}

func putAll(ctx context.Context, out putter) error {
	return until(func() error { return out.Put(ctx, load{make([]byte, 100), nil}) })
}

// putGet puts a load and gets that very one: the victim has left nothing, and takes nothing.
func putGet(ctx context.Context, q interface {
	putter
	getter
}) error {
	want := []byte("the survivor's")
	if err := q.Put(ctx, load{want, nil}); err != nil {
		return err
	}
	got, err := q.Get(ctx)
	if err == nil && !bytes.Equal(got.half, want) {
		err = fmt.Errorf("got %q, which is not what was put", got.half)
	}
	return err
}

// ends is the places of a queue, or a pipe, of which the victim and the survivor have one end each.
func ends(name string, sends, receives end, out func(v victimPart) putter, in func(v victimPart) getter) []place {
	gets := func(ctx context.Context, v victimPart) error { return getAll(ctx, in(v)) }
	puts := func(ctx context.Context, v victimPart) error { return putAll(ctx, out(v)) }
	return []place{
		{name: name + "/blocked in send", has: sends, died: ipc.ErrClosed, stopped: ipc.ErrEmpty, survivor: gets,
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return puts(ctx, v) }},
		{name: name + "/blocked in receive", has: receives, died: ipc.ErrClosed, stopped: ipc.ErrFull, survivor: puts,
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return gets(ctx, v) }},
		{name: name + "/in the middle of a copy out", has: sends, waits: true, died: ipc.ErrClosed,
			stopped: ipc.ErrEmpty, survivor: gets,
			victim: func(ctx context.Context, v victimPart) error { stuck(v); return puts(ctx, v) }},
		{name: name + "/in the middle of a copy in", has: receives, waits: true, died: ipc.ErrClosed,
			stopped: ipc.ErrFull, survivor: puts,
			before: func(ctx context.Context, v victimPart) error {
				return out(v).Put(ctx, load{make([]byte, 1<<20), nil})
			},
			victim: func(ctx context.Context, v victimPart) error { stuck(v); return gets(ctx, v) }},
		{name: name + "/waited for among others", has: sends, waits: true, died: ipc.ErrClosed, stopped: ipc.ErrEmpty,
			survivor: func(ctx context.Context, v victimPart) error {
				if _, err := ipc.Wait(ctx, v.Open, in(v).(ipc.Poller)); err != nil {
					return err
				}
				return gets(ctx, v)
			},
			victim: func(ctx context.Context, v victimPart) error { return v.stay(nil) }},
	}
}

func channels() []place {
	return append(
		ends("queue", aSender, aReceiver, func(v victimPart) putter { return v.Out },
			func(v victimPart) getter { return v.In }),
		ends("pipe", aSide, aSide, func(v victimPart) putter { return connEnd{v.Conn} },
			func(v victimPart) getter { return connEnd{v.Conn} })...)
}

// queues is the places of queues of which everybody has both ends: survivors go on.
func queues() []place {
	gets := func(ctx context.Context, v victimPart) error { return getAll(ctx, v.Open) }
	goesOn := func(ctx context.Context, v victimPart) error { return putGet(ctx, v.Open) }
	return []place{
		{name: "simple queue/blocked in receive", survivor: goesOn,
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return gets(ctx, v) }},
		{name: "simple queue/in the middle of a copy out", survivor: goesOn,
			victim: func(ctx context.Context, v victimPart) error { stuck(v); return putAll(ctx, v.Open) }},
		{name: "simple queue/in the middle of a copy in", survivor: goesOn,
			before: func(ctx context.Context, v victimPart) error {
				return v.Open.Put(ctx, load{make([]byte, 1<<20), nil})
			},
			victim: func(ctx context.Context, v victimPart) error { stuck(v); return gets(ctx, v) }},
	}
}

// joinables is the places of a joinable queue. What the dead had in hand is lost, and Join says
// whose it was.
func joinables() []place {
	join := func(ctx context.Context, v victimPart) error { return v.Tasks.Join(ctx) }
	put := func(ctx context.Context, v victimPart) error { return v.Tasks.Put(ctx, load{[]byte("a task"), nil}) }
	get := func(ctx context.Context, v victimPart) error { _, err := v.Tasks.Get(ctx); return err }
	return []place{
		{name: "joinable queue/with a task", waits: true, died: ipc.ErrTasksLost,
			stopped: context.DeadlineExceeded, before: put, survivor: join,
			victim: func(ctx context.Context, v victimPart) error { return v.stay(get(ctx, v)) }},
		{name: "joinable queue/in the middle of a copy in", waits: true, died: ipc.ErrTasksLost,
			stopped: context.DeadlineExceeded, before: put, survivor: join,
			victim: func(ctx context.Context, v victimPart) error { stuck(v); return get(ctx, v) }},
		{name: "joinable queue/blocked in receive",
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return get(ctx, v) },
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(putGet(ctx, v.Tasks), v.Tasks.TaskDone(), join(ctx, v))
			}},
		{name: "joinable queue/blocked in send", before: put,
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return put(ctx, v) },
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(get(ctx, v), v.Tasks.TaskDone(), putGet(ctx, v.Tasks), v.Tasks.TaskDone(),
					join(ctx, v))
			}},
		{name: "joinable queue/blocked in join",
			before: func(ctx context.Context, v victimPart) error { return errors.Join(put(ctx, v), get(ctx, v)) },
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return v.stay(join(ctx, v)) },
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(v.Tasks.TaskDone(), join(ctx, v))
			}},
	}
}

// memories is the places of memory that nothing guards: what is half written is there, and can be
// read and written over.
func memories() []place {
	const name = "what a victim writes to"
	return []place{
		{name: "shareable list/in the middle of a copy",
			victim: func(ctx context.Context, v victimPart) error {
				v.there()
				return until(func() error {
					return errors.Join(v.List.Set(0, "a"), v.List.Set(0, []byte("bytes")), v.List.Set(0, 1))
				})
			},
			survivor: func(ctx context.Context, v victimPart) error {
				if v.List.Len() != 2 {
					return fmt.Errorf("%d elements", v.List.Len())
				}
				first, err := v.List.At(0)
				b, _ := first.([]byte)
				if err == nil && first != "nothing yet" && first != "a" && first != 1 && string(b) != "bytes" {
					err = fmt.Errorf("the element is %#v, which nobody wrote", first)
				}
				seven, other := v.List.At(1)
				if seven != 7 {
					other = errors.Join(other, fmt.Errorf("%v is not 7", seven))
				}
				return errors.Join(err, other, v.List.Set(0, "mine"))
			}},
		{name: "named memory/in the middle of a copy",
			victim: func(ctx context.Context, v victimPart) error {
				m, err := ipc.NewMemory(name, 1<<20)
				if err != nil {
					return err
				}
				v.there()
				for i := byte(0); ; i++ {
					copy(m.Bytes(), bytes.Repeat([]byte{i}, m.Size()))
				}
			},
			survivor: func(ctx context.Context, v victimPart) error {
				m, err := ipc.Lookup[*ipc.Memory](name)
				if err != nil {
					return err
				}
				defer m.Close()
				if m.Size() != 1<<20 {
					return fmt.Errorf("%d bytes", m.Size())
				}
				clear(m.Bytes())
				return ipc.Unlink(name)
			}},
	}
}

//go:build shoalcrash

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/shoal-mp/shoal/internal/arena"
)

// workerSpec is the argument of a storm's worker.
type workerSpec struct {
	Number uint64
	Args   []uint64 // rings, followed by a block that every worker may import
}

// A worker is the state of a process that performs random operations on a domain until it is
// killed. It reports each operation before and after.
type worker struct {
	up     *os.File
	d      *arena.Domain
	rings  []*arena.Ring
	shared arena.Handle
	rand   *rand.Rand
	number uint64
	seq    uint64
	hoard  []arena.Handle
}

func workerMain(arg string) error {
	var s workerSpec
	if err := json.Unmarshal([]byte(arg), &s); err != nil {
		return err
	}
	w := &worker{up: os.NewFile(5, "up"), number: s.Number, rand: rand.New(rand.NewPCG(s.Number, 1))}
	d, err := arena.Attach(os.NewFile(3, "control"), os.NewFile(4, "data"))
	if err != nil {
		return err
	}
	w.d = d
	for _, a := range s.Args[:stormRings] {
		if err := d.Import(arena.Handle(a)); err != nil {
			return err
		}
		r, err := d.OpenRing(arena.Handle(a))
		if err != nil {
			return err
		}
		w.rings = append(w.rings, r)
	}
	w.shared = arena.Handle(s.Args[stormRings])
	for {
		if err := w.step(); err != nil {
			return fmt.Errorf("worker %d: %w", w.number, err)
		}
	}
}

// say writes a record of kind about message id in one call, so that it is never written
// partially.
func (w *worker) say(kind byte, id uint64) {
	rec := [9]byte{kind}
	binary.LittleEndian.PutUint64(rec[1:], id)
	w.up.Write(rec[:])
}

func (w *worker) step() error {
	r := w.rings[w.rand.IntN(len(w.rings))]
	at := w.rand.IntN(13)
	err := w.do(at, r)
	if err != nil {
		return fmt.Errorf("step %d: %w", at, err)
	}
	return nil
}

func (w *worker) do(at int, r *arena.Ring) error {
	switch at {
	case 0, 1, 2:
		return w.put(r, w.rand.IntN(5), 1<<w.rand.IntN(16), 0)
	case 3:
		return w.put(r, 5+w.rand.IntN(4), 100, 500)
	case 4, 5, 6:
		return w.get(r)
	case 7:
		return w.keep()
	case 8:
		return w.share()
	case 9:
		return w.name()
	case 10:
		return w.putBatch(r)
	case 11:
		return w.getBatch(r)
	default:
		return w.ring()
	}
}

func (w *worker) put(r *arena.Ring, n, size, long int) error {
	w.seq++
	id := w.number<<24 | w.seq
	hs, err := blocks(w.d, id, n, max(size, 16))
	if err != nil {
		return w.full(err, hs)
	}
	w.say(saysBegin, id)
	move := w.rand.IntN(2) == 0
	err = r.TryPut(body(id, n, long), hs, move)
	if err == nil {
		w.say(saysPut, id)
	}
	if err == nil && move {
		return nil
	}
	return w.full(err, hs)
}

// full releases hs and returns err, or nil for the errors of a busy domain. They include
// [context.DeadlineExceeded]: an attempt waits at most a second for a worker in the middle of a
// put or get, and a reaper may need longer to complete it.
func (w *worker) full(err error, hs []arena.Handle) error {
	if errors.Is(err, arena.ErrFull) || errors.Is(err, arena.ErrNoSpace) || errors.Is(err, arena.ErrEmpty) ||
		errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, release(w.d, hs...))
}

// get gets a message of r, if there is one, and verifies it. One in three is forwarded to
// another ring with the same blocks.
func (w *worker) get(r *arena.Ring) error {
	var m arena.Message
	w.say(saysTake, 1)
	if err := r.TryGet(&m); err != nil {
		w.say(saysNone, 0)
		return w.full(err, nil)
	}
	id, err := verifyMessage(w.d, &m)
	if err != nil {
		return err
	}
	w.say(saysGot, id)
	defer m.Done()
	if w.rand.IntN(3) != 0 {
		return release(w.d, m.Blocks...)
	}
	w.seq++
	next := w.number<<24 | w.seq
	for k, h := range m.Blocks {
		if err := fill(w.d, h, next, k); err != nil {
			return err
		}
	}
	w.say(saysBegin, next)
	err = w.rings[w.rand.IntN(len(w.rings))].TryPut(body(next, len(m.Blocks), 0), m.Blocks, true)
	if err == nil {
		w.say(saysPut, next)
		return nil
	}
	return w.full(err, m.Blocks)
}

// putBatch puts a batch of new messages without blocks into r. A full ring is no error.
func (w *worker) putBatch(r *arena.Ring) error {
	var b arena.Batch
	first := w.number<<24 | (w.seq + 1)
	for range 1 + w.rand.IntN(20) {
		w.seq++
		id := w.number<<24 | w.seq
		w.say(saysBegin, id)
		b.Body = append(b.Body, body(id, 0, 0)...)
		b.Ends = append(b.Ends, len(b.Body))
	}
	n, err := r.TryPutBatch(&b)
	for i := range n {
		w.say(saysPut, first+uint64(i))
	}
	return w.full(err, nil)
}

// getBatch gets a batch of the next messages without blocks of r, and verifies and records them.
func (w *worker) getBatch(r *arena.Ring) error {
	var b arena.Batch
	most := 1 + w.rand.IntN(20)
	w.say(saysTake, uint64(most))
	n, err := r.TryGetBatch(&b, most)
	for i := range n {
		id, e := verifyMessage(w.d, &arena.Message{Body: b.At(i)})
		if err = errors.Join(err, e); e == nil {
			w.say(saysGot, id)
		}
	}
	w.say(saysNone, 0)
	return err
}

// keep allocates a block and releases an older one, so that the worker holds some blocks for a
// while.
func (w *worker) keep() error {
	h, err := w.d.Alloc(1 << w.rand.IntN(21))
	if err != nil {
		return w.full(err, nil)
	}
	if w.hoard = append(w.hoard, h); len(w.hoard) < 4 {
		return nil
	}
	old := w.hoard[0]
	w.hoard = w.hoard[1:]
	return release(w.d, old)
}

// share imports the shared block and passes it through a private ring while other workers do the
// same.
func (w *worker) share() error {
	if err := errors.Join(w.d.Import(w.shared), w.d.Retain(w.shared)); err != nil {
		return err
	}
	return errors.Join(w.carry(w.shared), release(w.d, w.shared, w.shared))
}

func (w *worker) carry(h arena.Handle) error {
	r, s, e, err := w.d.NewRing(arena.RingOptions{Capacity: 4})
	if err != nil {
		return w.full(err, nil)
	}
	defer r.Close()
	var m arena.Message
	err = errors.Join(r.TryPut(nil, []arena.Handle{h}, false), r.TryPut(nil, []arena.Handle{h}, false), r.TryGet(&m))
	m.Discard()
	return errors.Join(err, release(w.d, r.Handle(), s, e)) // freed with a message in it
}

// ring creates a ring that contains messages and a ring, and releases all of it, one end first.
func (w *worker) ring() error {
	inner, s, e, err := w.d.NewRing(arena.RingOptions{Capacity: 2})
	if err != nil {
		return w.full(err, nil)
	}
	defer inner.Close()
	hs, err := blocks(w.d, 1, 2, 3000)
	if err != nil {
		return w.full(err, append(hs, inner.Handle(), s, e))
	}
	err = inner.TryPut(nil, append(hs, s), true)
	if err == nil {
		err = w.carry(inner.Handle())
	}
	var m arena.Message
	if w.rand.IntN(2) == 0 {
		err = errors.Join(err, inner.TryGet(&m))
		m.Discard()
		if err == nil {
			err = finished(inner, &m)
		}
	}
	return errors.Join(err, release(w.d, inner.Handle(), e))
}

// finished waits until a get into m reports that the ring's last sender is gone, and returns an
// error if the get has another result. That may take a moment: a reaper that was examining the
// token finalizes it, and it may be stopped.
func finished(r *arena.Ring, m *arena.Message) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Get(ctx, m); !errors.Is(err, arena.ErrFinished) {
		return fmt.Errorf("the last sender is gone and a get says %v", err)
	}
	return nil
}

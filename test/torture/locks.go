//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// IDs of the locks in the ledger.
const (
	theMutex = iota + 1
	theWriter
	thePermits
)

const lockers, permits, nameCount = 6, 2, 40

// A lockJob holds the objects that the processes of a lock storm share.
type lockJob struct {
	Number  uint64
	Book    string
	Mutex   *ipc.Mutex
	RW      *ipc.RWMutex
	Sem     *ipc.Semaphore
	Numbers *ipc.Array[int64] // 0 and 1 differ only within Mutex, 2 and 3 within RW
	Cond    *ipc.Cond
	Event   *ipc.Event
	Barrier *ipc.Barrier
	Queue   *ipc.Queue[numberedTensor]
	Pipe    *ipc.PipeEnd[numberedTensor, numberedTensor]
	Latest  *ipc.Latest[numberedTensor]
}

// A numberedTensor is a value with an ID that its tensor repeats.
type numberedTensor struct {
	ID uint64
	T  *tensor.Tensor
}

func newParcel(id uint64, n int) (numberedTensor, error) {
	t, err := tensor.NewShared(tensor.Int64, n)
	if err != nil {
		return numberedTensor{}, err
	}
	return numberedTensor{id, t.Fill(float64(id))}, nil
}

// open closes the tensor and returns the ID. It returns an error if an element of the tensor is not
// the ID.
func (p numberedTensor) open() (uint64, error) {
	for _, v := range tensor.Data[int64](p.T) {
		if v != int64(p.ID) {
			return 0, errors.Join(fmt.Errorf("tensor %#x has the element %#x", p.ID, v), p.T.Close())
		}
	}
	return p.ID, p.T.Close()
}

var lockWork = shoal.Register("torture locks", func(ctx context.Context, _ int, j lockJob) error {
	return j.work(ctx)
})

// work performs random actions, including more, until ctx is done. It returns nil then, or the
// first error of an action.
func (j lockJob) work(ctx context.Context, more ...func(w *locker, ctx context.Context) error) error {
	p, err := openPen(j.Book)
	if err != nil {
		return err
	}
	w := &locker{lockJob: j, pen: p, rand: rand.New(rand.NewPCG(j.Number, 2))}
	deeds := []func(context.Context) error{w.mutex, w.write, w.read, w.permit, w.name, w.put, w.get, w.send,
		w.receive, w.wait, w.meet, w.event, w.latest}
	for _, deed := range more {
		deeds = append(deeds, func(ctx context.Context) error { return deed(w, ctx) })
	}
	for ctx.Err() == nil {
		if err := deeds[w.rand.IntN(len(deeds))](ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("process %d: %w", j.Number, err)
		}
	}
	return nil
}

// A locker is the state of a process of a lock storm. Its methods perform one action each.
type locker struct {
	lockJob
	pen
	rand *rand.Rand
	seq  uint64
}

// brief returns a context with a short random deadline, for waits that may be in vain. The
// caller must call the returned function.
func (w *locker) brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(w.rand.IntN(10))*time.Millisecond)
}

// forgive returns nil for the errors that a wait may return because of a deadline or the death
// of another process, and for the errors also. It returns other errors unchanged.
func forgive(err error, also ...error) error {
	for _, known := range append(also, ipc.ErrLocked, ipc.ErrEmpty, ipc.ErrFull, context.DeadlineExceeded) {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}

// inside performs a critical section and then calls unlock. err must be the result of locking; if
// locking failed, inside returns forgive(err). If the previous holder died, inside first repairs
// the state and calls mark, which must mark the lock consistent. It returns an error if numbers at
// and at+1 differ although no holder died. The ledger names the lock id.
func (w *locker) inside(err error, id uint64, at int, mark, unlock func() error) error {
	died := errors.Is(err, ipc.ErrOwnerDied)
	if err != nil && !died {
		return forgive(err)
	}
	w.pen.write(enters, id)
	a, err1 := w.Numbers.At(at)
	b, err2 := w.Numbers.At(at + 1)
	err = errors.Join(err1, err2)
	switch {
	case err != nil:
	case died:
		err = errors.Join(w.Numbers.Set(at+1, a), w.Cond.NotifyAll(), mark())
	case a != b:
		err = fmt.Errorf("lock %d: the numbers are %d and %d, want equal ones, because no holder died", id, a, b)
	}
	err = errors.Join(err, w.Numbers.Set(at, a+1))
	time.Sleep(time.Duration(w.rand.IntN(200)) * time.Microsecond)
	err = errors.Join(err, w.Numbers.Set(at+1, a+1))
	w.pen.write(leaves, id)
	return errors.Join(err, unlock())
}

func (w *locker) mutex(ctx context.Context) error {
	return w.inside(w.Mutex.Lock(ctx), theMutex, 0, w.Mutex.MarkConsistent, w.Mutex.Unlock)
}

func (w *locker) write(ctx context.Context) error {
	return w.inside(w.RW.Lock(ctx), theWriter, 2, w.RW.MarkConsistent, w.RW.Unlock)
}

func (w *locker) read(ctx context.Context) error {
	if err := w.RW.RLock(ctx); err != nil {
		return forgive(err, ipc.ErrOwnerDied)
	}
	a, err1 := w.Numbers.At(2)
	b, err2 := w.Numbers.At(3)
	err := errors.Join(err1, err2, w.RW.RUnlock())
	if err == nil && a != b {
		err = fmt.Errorf("a reader sees %d and %d", a, b)
	}
	return err
}

func (w *locker) permit(ctx context.Context) error {
	if err := w.Sem.Acquire(ctx); err != nil {
		return err
	}
	w.pen.write(enters, thePermits)
	time.Sleep(time.Duration(w.rand.IntN(200)) * time.Microsecond)
	w.pen.write(leaves, thePermits)
	return w.Sem.Release()
}

// name binds, looks up or unlinks a random name that other processes use as well.
func (w *locker) name(ctx context.Context) error {
	name := fmt.Sprintf("torture %d", w.rand.IntN(nameCount))
	switch w.rand.IntN(3) {
	case 0:
		v, err := newParcel(w.number(), 1+w.rand.IntN(50))
		if err != nil {
			return err
		}
		return errors.Join(forgive(ipc.Bind(ctx, name, v), arena.ErrExist), v.T.Close())
	case 1:
		v, err := ipc.Lookup[numberedTensor](name)
		if err != nil {
			return forgive(err, arena.ErrNotExist)
		}
		_, err = v.open()
		return err
	}
	return forgive(ipc.Unlink(name), arena.ErrNotExist)
}

func (w *locker) number() uint64 {
	w.seq++
	return w.Number<<24 | w.seq
}

// putNumbered creates a numbered tensor, passes it to put and records the result in the ledger.
// The error of put is forgiven if put could not wait longer. putNumbered closes the tensor.
func (w *locker) putNumbered(put func(numberedTensor) error) error {
	v, err := newParcel(w.number(), 1+w.rand.IntN(500))
	if err != nil {
		return err
	}
	w.pen.write(begins, v.ID)
	if err = put(v); err == nil {
		w.pen.write(ends, v.ID)
	}
	return errors.Join(forgive(err), v.T.Close())
}

// takeTensor calls get, verifies and closes the numbered tensor, and records the result in the
// ledger. It is no error if get finds none.
func (w *locker) takeTensor(get func() (numberedTensor, error)) error {
	w.pen.write(takes, 0)
	v, err := get()
	if err != nil {
		w.pen.write(none, 0)
		return forgive(err)
	}
	id, err := v.open()
	if err == nil {
		w.pen.write(gets, id)
	}
	return err
}

func (w *locker) put(ctx context.Context) error {
	ctx, cancel := w.brief(ctx)
	defer cancel()
	return w.putNumbered(func(v numberedTensor) error { return w.Queue.Put(ctx, v) })
}

func (w *locker) get(ctx context.Context) error {
	ctx, cancel := w.brief(ctx)
	defer cancel()
	return w.takeTensor(func() (numberedTensor, error) { return w.Queue.Get(ctx) })
}

// send sends a numbered tensor to the other end of the pipe, which sends it back.
func (w *locker) send(ctx context.Context) error {
	ctx, cancel := w.brief(ctx)
	defer cancel()
	return w.putNumbered(func(v numberedTensor) error { return w.Pipe.Send(ctx, v) })
}

func (w *locker) receive(ctx context.Context) error {
	ctx, cancel := w.brief(ctx)
	defer cancel()
	return w.takeTensor(func() (numberedTensor, error) { return w.Pipe.Recv(ctx) })
}

// wait waits in the Cond for a short time, or notifies its waiters.
func (w *locker) wait(ctx context.Context) error {
	brief, cancel := w.brief(ctx)
	defer cancel()
	m := w.Cond.Mutex()
	if err := m.Lock(ctx); err != nil {
		if !errors.Is(err, ipc.ErrOwnerDied) {
			return forgive(err)
		}
		if err := errors.Join(w.Cond.NotifyAll(), m.MarkConsistent()); err != nil {
			return err
		}
	}
	var err error
	if w.rand.IntN(3) == 0 {
		err = w.Cond.Notify(1 + w.rand.IntN(2))
	} else if err = w.Cond.Wait(brief); errors.Is(err, ipc.ErrOwnerDied) {
		err = errors.Join(w.Cond.NotifyAll(), m.MarkConsistent())
	} else if errors.Is(err, ipc.ErrLocked) {
		return nil // another process holds the Mutex
	}
	return errors.Join(forgive(err), m.Unlock())
}

// meet waits at the barrier for a short time and resets it if it is broken.
func (w *locker) meet(ctx context.Context) error {
	ctx, cancel := w.brief(ctx)
	defer cancel()
	if _, err := w.Barrier.Wait(ctx); err != nil {
		if err := forgive(err, ipc.ErrBroken); err != nil {
			return err
		}
		return w.Barrier.Reset()
	}
	return nil
}

func (w *locker) event(ctx context.Context) error {
	ctx, cancel := w.brief(ctx)
	defer cancel()
	switch w.rand.IntN(3) {
	case 0:
		return w.Event.Set()
	case 1:
		return w.Event.Clear()
	}
	return forgive(w.Event.Wait(ctx))
}

// latest stores a value in the Latest, or loads one and checks that it is complete.
func (w *locker) latest(ctx context.Context) error {
	if w.rand.IntN(2) == 0 {
		v, err := newParcel(w.number(), 1+w.rand.IntN(100))
		if err != nil {
			return err
		}
		_, err = w.Latest.Store(ctx, v)
		return errors.Join(forgive(err), v.T.Close())
	}
	v, _, err := w.Latest.Load()
	if err != nil {
		return err
	}
	_, err = v.open()
	return err
}

// lockStorm kills processes that use the objects of package ipc: locks, names, queues and pipes.
// It reports violations to s.
func lockStorm(s *storm) error { return lockerStorm(s, lockWork) }

func lockerStorm(s *storm, work *shoal.Func[lockJob]) (err error) {
	j := lockJob{Book: s.path}
	var errs [11]error
	j.Mutex, errs[0] = ipc.NewMutex()
	j.RW, errs[1] = ipc.NewRWMutex()
	j.Sem, errs[2] = ipc.NewBoundedSemaphore(permits)
	j.Numbers, errs[3] = ipc.NewArray[int64](4)
	j.Cond, errs[4] = ipc.NewCond(nil)
	j.Event, errs[5] = ipc.NewEvent()
	j.Barrier, errs[6] = ipc.NewBarrier(2)
	j.Queue, errs[7] = ipc.NewQueue[numberedTensor](32)
	var far *ipc.PipeEnd[numberedTensor, numberedTensor]
	j.Pipe, far, errs[8] = ipc.Pipe[numberedTensor, numberedTensor]()
	first, err := newParcel(7, 7)
	errs[9] = err
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if j.Latest, errs[10] = ipc.NewLatest(first); errs[10] != nil {
		return errs[10]
	}
	var inHand uint64
	echo := make(chan error, 1)
	turn, stop := context.WithCancel(s.ctx)
	go func() { echo <- reflect(turn, far, &inHand) }()
	s.keep(lockers, func(g *shoal.Group, n uint64) *shoal.Process {
		j := j
		j.Number = n
		return work.Go(g, j)
	})
	stop()
	err = forgive(<-echo, context.Canceled)
	all := s.book.readEntries()
	for what, most := range map[uint64]int{theMutex: 1, theWriter: 1, thePermits: permits} {
		alone(s, all, what, most)
	}
	ctx, cancel := s.timeoutContext()
	defer cancel()
	err = errors.Join(err, forgive(j.Mutex.Lock(ctx), ipc.ErrOwnerDied), forgive(j.RW.Lock(ctx), ipc.ErrOwnerDied))
	for range permits {
		err = errors.Join(err, j.Sem.Acquire(ctx))
	}
	if !errors.Is(j.Sem.TryAcquire(), ipc.ErrLocked) {
		s.wrong(&s.seen.Twice, 1, "there are more than %d permits", permits)
	}
	if ctx.Err() != nil {
		s.wrong(&s.seen.Hangs, 1, "locks of the dead: %v", err)
	}
	err = errors.Join(err, j.Mutex.Unlock(), j.RW.Unlock(), j.Sem.Release(), j.Sem.Release())
	a, doubtful := accounts(all)
	if inHand != 0 {
		a.got[inHand]++
	}
	for _, in := range []func() (numberedTensor, error){j.Queue.TryGet, j.Pipe.TryRecv, far.TryRecv} {
		for {
			v, failed := in()
			if failed != nil {
				err = errors.Join(err, forgive(failed))
				break
			}
			id, failed := v.open()
			a.got[id]++
			err = errors.Join(err, failed)
		}
	}
	a.judge(s, doubtful)
	for n := range nameCount {
		err = errors.Join(err, forgive(ipc.Unlink(fmt.Sprintf("torture %d", n)), arena.ErrNotExist))
	}
	return errors.Join(err, first.T.Close(), j.Mutex.Close(), j.RW.Close(), j.Sem.Close(), j.Numbers.Close(),
		j.Cond.Close(), j.Event.Close(), j.Barrier.Close(), j.Queue.Close(), j.Pipe.Close(), far.Close(),
		j.Latest.Close())
}

// reflect sends received tensors back through the pipe until it fails, and returns the error.
// *inHand is the ID of a numbered tensor that has been received and not sent yet, or 0.
func reflect(ctx context.Context, far *ipc.PipeEnd[numberedTensor, numberedTensor], inHand *uint64) error {
	for {
		v, err := far.Recv(ctx)
		if err != nil {
			return err
		}
		*inHand = v.ID
		if err := errors.Join(far.Send(ctx, v), v.T.Close()); err != nil {
			return err
		}
		*inHand = 0
	}
}

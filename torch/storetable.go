package torch

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A storeRoom is the memory budget of a server: the number of bytes that it may still allocate.
// charge fails with an error that wraps [ErrTooLong] if the budget is exceeded. The methods may
// be called from several goroutines.
type storeRoom struct {
	mu         sync.Mutex
	left, most int64
}

func (r *storeRoom) charge(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.left {
		return fmt.Errorf("%w: only %d bytes free of StoreOptions.MaxBytes, %d", ErrTooLong,
			r.left, r.most)
	}
	r.left -= n
	return nil
}

func (r *storeRoom) refund(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += n
}

// storeCost is the approximate overhead, in bytes, of a key, of a queued value and of a wait for a
// key.
const storeCost = 128

// A storeTable is the content of a store: values by key, queues by key, and pending waits.
// newStoreTable makes it. Its methods implement the queries of TCPStore and may be called from
// several goroutines, except those that require t.mu.
type storeTable struct {
	mu      sync.Mutex
	values  map[string][]byte
	queues  map[string][][]byte
	waiting map[storeEvent][]*storeWait
	room    *storeRoom
}

// A storeEvent is an event that a wait is for: a value under a key, or the last arrival at a
// barrier.
type storeEvent struct {
	key     string
	barrier bool
}

// A storeWait is the pending wait of one client. It is over when missing is empty. The lock of
// the table, t.mu, guards missing; told is closed after the client has been notified.
type storeWait struct {
	missing map[storeEvent]bool
	cost    int64
	over    func() // notifies the client; called without the table's lock
	told    chan struct{}
}

func newStoreTable(room *storeRoom) *storeTable {
	return &storeTable{values: map[string][]byte{}, queues: map[string][][]byte{},
		waiting: map[storeEvent][]*storeWait{}, room: room}
}

// changeLocked calls f with t.mu held, and returns its error. Without the lock it then notifies
// the clients of the waits that f has ended.
func (t *storeTable) changeLocked(f func() (over []*storeWait, err error)) error {
	t.mu.Lock()
	over, err := f()
	t.mu.Unlock()
	for _, w := range over {
		w.over()
		close(w.told)
	}
	return err
}

// putValue stores a value and returns the waits that are over, for changeLocked to notify. The
// error wraps [ErrTooLong] if the memory budget is exceeded. The caller must hold t.mu.
func (t *storeTable) putValue(key string, value []byte) ([]*storeWait, error) {
	old, there := t.values[key]
	more := int64(len(value) - len(old))
	if !there {
		more += int64(len(key)) + storeCost
	}
	if err := t.room.charge(more); err != nil {
		return nil, err
	}
	t.values[key] = value
	return t.notifyEvent(storeEvent{key: key}, -1), nil
}

// notifyEvent removes an event from the waits for it until most waits are over, or from all of
// them if most is negative. It returns the waits that are over, oldest first, for changeLocked
// to notify. The caller must hold t.mu.
func (t *storeTable) notifyEvent(e storeEvent, most int) (over []*storeWait) {
	for _, w := range slices.Clone(t.waiting[e]) {
		if len(over) == most {
			break
		}
		if t.removeEvent(w, e); len(w.missing) == 0 {
			t.room.refund(w.cost)
			over = append(over, w)
		}
	}
	return over
}

// removeEvent removes an event from one wait. The caller must hold t.mu.
func (t *storeTable) removeEvent(w *storeWait, e storeEvent) {
	delete(w.missing, e)
	others := slices.DeleteFunc(t.waiting[e], func(other *storeWait) bool { return other == w })
	if len(others) == 0 {
		delete(t.waiting, e)
		return
	}
	t.waiting[e] = others
}

// set implements SET and MULTI_SET: values[i] is stored under keys[i]. It keeps the values
// without a copy. The error wraps [ErrTooLong] if the memory budget is exceeded; the keys before
// remain set.
func (t *storeTable) set(keys []string, values [][]byte) error {
	return t.changeLocked(func() (over []*storeWait, err error) {
		for i, key := range keys {
			now, err := t.putValue(key, values[i])
			over = append(over, now...)
			if err != nil {
				return over, err
			}
		}
		return over, nil
	})
}

// compareSet stores desired under key if the key's value equals expected, or if it has no value
// and expected is empty. It returns the value that the key has afterwards, or expected if the
// key has none.
func (t *storeTable) compareSet(key string, expected, desired []byte) (now []byte, err error) {
	err = t.changeLocked(func() ([]*storeWait, error) {
		old, there := t.values[key]
		now = old
		switch {
		case there && bytes.Equal(old, expected), !there && len(expected) == 0:
			now = desired
			return t.putValue(key, desired)
		case !there:
			now = expected
		}
		return nil, nil
	})
	return now, err
}

// get returns the values of keys. The value of a missing key is nil. The caller must not modify
// the values.
func (t *storeTable) get(keys []string) [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = t.values[key]
	}
	return values
}

// add adds n to the integer stored as text under key, and returns the sum. A missing key counts
// as 0. The error wraps [ErrProtocol] if the value is not an integer.
func (t *storeTable) add(key string, n int64) (sum int64, err error) {
	err = t.changeLocked(func() ([]*storeWait, error) {
		if sum, err = t.keyCount(key); err != nil {
			return nil, err
		}
		sum += n
		return t.putValue(key, strconv.AppendInt(nil, sum, 10))
	})
	return sum, err
}

func (t *storeTable) keyCount(key string) (int64, error) {
	old, there := t.values[key]
	if !there {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(old)), 10, 64)
	if err != nil {
		return 0, protocolError("add to key %.100q: value is %.100q, want a number", key, old)
	}
	return n, nil
}

// append appends to the value of a key, or sets it if the key has none. It must not write to the
// old slice, which another client may be receiving.
func (t *storeTable) append(key string, more []byte) error {
	return t.changeLocked(func() ([]*storeWait, error) { return t.putValue(key, slices.Concat(t.values[key], more)) })
}

// remove deletes the value of a key, and reports whether it had one. Queues are not affected.
func (t *storeTable) remove(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, there := t.values[key]
	if there {
		t.room.refund(int64(len(key)+len(old)) + storeCost)
		delete(t.values, key)
	}
	return there
}

// sortedKeys returns all keys with values, sorted by their bytes.
func (t *storeTable) sortedKeys() [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([][]byte, 0, len(t.values))
	for key := range t.values {
		all = append(all, []byte(key))
	}
	slices.SortFunc(all, bytes.Compare)
	return all
}

func (t *storeTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.values)
}

// hasAll reports whether every key has a value or a nonempty queue.
func (t *storeTable) hasAll(keys []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.ContainsFunc(keys, t.isMissing)
}

func (t *storeTable) isMissing(key string) bool {
	_, there := t.values[key]
	return !there && len(t.queues[key]) == 0
}

// push appends a value to the queue of a key, and notifies the first client that waits for the
// key. The error wraps [ErrTooLong] if the memory budget is exceeded.
func (t *storeTable) push(key string, value []byte) error {
	return t.changeLocked(func() ([]*storeWait, error) {
		if err := t.room.charge(int64(len(key)+len(value)) + storeCost); err != nil {
			return nil, err
		}
		t.queues[key] = append(t.queues[key], value)
		return t.notifyEvent(storeEvent{key: key}, 1), nil
	})
}

// pop removes the first value of a queue and returns it. n is the length that the queue had
// before, which is 0 if it was empty.
func (t *storeTable) pop(key string) (n int, value []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queues[key]
	if len(queue) == 0 {
		return 0, nil
	}
	value = queue[0]
	t.room.refund(int64(len(key)+len(value)) + storeCost)
	if t.queues[key] = queue[1:]; len(queue) == 1 {
		delete(t.queues, key)
	}
	return len(queue), value
}

func (t *storeTable) queueLength(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queues[key])
}

// notifyOthers notifies other clients that wait for the queues of keys, because the client that
// was notified before left without popping.
func (t *storeTable) notifyOthers(keys []string) {
	t.changeLocked(func() (over []*storeWait, err error) {
		for _, key := range keys {
			over = append(over, t.notifyEvent(storeEvent{key: key}, len(t.queues[key]))...)
		}
		return over, nil
	})
}

// wait registers a wait for the missing keys and returns it. When all have a value or a queue,
// over is called once, without the table's lock, by the goroutine that stores the last one. If
// none is missing, wait returns nil and over is not called. The error wraps [ErrTooLong] if the
// memory budget is exceeded. The caller must not hold t.mu.
func (t *storeTable) wait(keys []string, over func()) (w *storeWait, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.registerWait(slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !t.isMissing(key) }),
		false, over)
}

// arriveBarrier counts one arrival at a barrier of the given number of members. It returns a nil
// wait if the arrival completes the barrier. Otherwise it registers a wait, and calls over once
// when the barrier is complete.
func (t *storeTable) arriveBarrier(key string, members int64, over func()) (w *storeWait, err error) {
	err = t.changeLocked(func() (all []*storeWait, err error) {
		n, err := t.keyCount(key)
		if err != nil {
			return nil, err
		}
		if all, err = t.putValue(key, strconv.AppendInt(nil, n+1, 10)); err != nil {
			return all, err
		}
		if n+1 >= members {
			return append(all, t.notifyEvent(storeEvent{key, true}, -1)...), nil
		}
		w, err = t.registerWait([]string{key}, true, over)
		return all, err
	})
	return w, err
}

func (t *storeTable) registerWait(keys []string, barrier bool, over func()) (*storeWait, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	w := &storeWait{missing: map[storeEvent]bool{}, over: over, told: make(chan struct{})}
	for _, key := range keys {
		w.cost += int64(len(key)) + storeCost
	}
	if err := t.room.charge(w.cost); err != nil {
		return nil, err
	}
	for _, key := range keys {
		e := storeEvent{key, barrier}
		if !w.missing[e] {
			w.missing[e] = true
			t.waiting[e] = append(t.waiting[e], w)
		}
	}
	return w, nil
}

// cancelWait ends a wait without a call of its over function. If the wait was over before,
// cancelWait returns after the client has been notified. w may be nil.
func (t *storeTable) cancelWait(w *storeWait) {
	if w == nil {
		return
	}
	t.mu.Lock()
	over := len(w.missing) == 0
	for e := range w.missing {
		t.removeEvent(w, e)
	}
	if !over {
		t.room.refund(w.cost)
	}
	t.mu.Unlock()
	if over {
		<-w.told
	}
}

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Dict is a map in the server. Each call is atomic, including calls that set several values.
//
// Keys are equal if their encodings are equal. V may be any type that can be sent to other
// processes (see package wire), such as a proxy. The Dict holds references to the shared memory of
// its values, such as the elements of a tensor, without copying it.
type Dict[K comparable, V any] struct{ keyed[Dict[K, V], K] }

// NewDict creates an empty Dict. The caller must close it. The error wraps wire.ErrType if keys or
// values cannot be sent to other processes.
func NewDict[K comparable, V any](ctx context.Context, m *Manager) (*Dict[K, V], error) {
	if err := check[map[K]V](); err != nil {
		return nil, fmt.Errorf("manager: new Dict: %w", err)
	}
	p, err := newKeyed[Dict[K, V], K](ctx, m)
	return &Dict[K, V]{p}, err
}

// Get returns the value for k, or [ErrNoKey]. The caller must close the value's shared memory.
func (d *Dict[K, V]) Get(ctx context.Context, k K) (V, error) {
	return one[V](d.call(ctx, dictGet, in(k)))
}

// Set sets the value for k. The server keeps a copy of v that shares the blocks of v. The caller
// must still close v.
func (d *Dict[K, V]) Set(ctx context.Context, k K, v V) error {
	return d.call(ctx, dictUpdate, in(k), in(v)).none()
}

// Update sets the values for several keys in one call.
func (d *Dict[K, V]) Update(ctx context.Context, all map[K]V) error {
	args := make([]argument, 0, 2*len(all))
	for k, v := range all {
		args = append(args, in(k), in(v))
	}
	return d.call(ctx, dictUpdate, args...).none()
}

// Add atomically adds delta to the value for k and returns the sum. A missing value counts as 0. It
// returns [ErrNotNumber] if V is not a number type.
func (d *Dict[K, V]) Add(ctx context.Context, k K, delta V) (V, error) {
	return one[V](d.call(ctx, dictAdd, in(k), in(kindOf[V]()), in(delta)))
}

// SetDefault sets the value for k if there is none, and returns the current value. The caller must
// close its shared memory.
func (d *Dict[K, V]) SetDefault(ctx context.Context, k K, v V) (V, error) {
	return one[V](d.call(ctx, dictSetDefault, in(k), in(v)))
}

// CompareAndSwap sets the value for k to v if it equals old, and reports whether it did. Values are
// equal if their encodings are equal.
func (d *Dict[K, V]) CompareAndSwap(ctx context.Context, k K, old, v V) (bool, error) {
	return one[bool](d.call(ctx, dictCas, in(k), in(old), in(v)))
}

// Pop removes k and returns its value, or [ErrNoKey]. The caller must close the value's shared
// memory.
func (d *Dict[K, V]) Pop(ctx context.Context, k K) (V, error) {
	back := func(results []item) request {
		key := in(k)
		if key.err != nil || len(results) != 1 {
			return dictLen.with(nil)
		}
		return dictUpdate.with([]item{key.own(), results[0]})
	}
	return one[V](d.callUndo(ctx, back, dictPop, in(k)))
}

// PopItem removes an arbitrary key and returns it with its value. It returns [ErrNoKey] if the Dict
// is empty. The caller must close the value's shared memory.
func (d *Dict[K, V]) PopItem(ctx context.Context) (K, V, error) {
	return pair[K, V](d.callUndo(ctx, dictUpdate.with, dictFirst))
}

// Delete removes k. It returns [ErrNoKey] if there is no such key.
func (d *Dict[K, V]) Delete(ctx context.Context, k K) error {
	return d.call(ctx, dictDelete, in(k)).none()
}

// Keys returns the keys, ordered by their encodings.
func (d *Dict[K, V]) Keys(ctx context.Context) ([]K, error) { return all[K](d.call(ctx, dictKeys)) }

// Values returns the values, ordered by the encodings of their keys. The caller must close the
// values' shared memory.
func (d *Dict[K, V]) Values(ctx context.Context) ([]V, error) {
	return all[V](d.call(ctx, dictValues))
}

// All returns a copy of the whole map, in one call. The caller must close the values' shared
// memory.
func (d *Dict[K, V]) All(ctx context.Context) (map[K]V, error) {
	a := d.call(ctx, dictAll)
	if a.err != nil || len(a.items)%2 != 0 {
		return nil, errors.Join(a.none())
	}
	m := make(map[K]V, len(a.items)/2)
	for i := 0; i < len(a.items); i += 2 {
		k, err1 := unpack[K](a.c, a.items[i])
		v, err2 := unpack[V](a.c, a.items[i+1])
		if err := errors.Join(err1, err2); err != nil {
			releaseAll(a.c, a.items[i+2:])
			return nil, err
		}
		m[k] = v
	}
	return m, nil
}

// keyed is the common part of the proxies of a Dict and a Set. T is the type as which the proxy is
// sent.
type keyed[T any, K comparable] struct{ counted[T] }

func newKeyed[T any, K comparable](ctx context.Context, m *Manager) (keyed[T, K], error) {
	p, err := create[T](ctx, m, dictKind)
	return keyed[T, K]{counted[T]{p}}, err
}

// Has reports whether k is present.
func (p *keyed[T, K]) Has(ctx context.Context, k K) (bool, error) {
	return one[bool](p.call(ctx, dictHas, in(k)))
}

// Clear removes all elements.
func (p *keyed[T, K]) Clear(ctx context.Context) error { return p.call(ctx, dictClear).none() }

// A dict is the server's state of a Dict, a Set or a Namespace: items by the encodings of their
// keys. The entries are in a slice, so that an arbitrary one is found in constant time; an
// iteration over a Go map scans all slots that were ever in use.
type dict struct {
	entries []entry
	places  map[string]int // index in entries, by key
}

type entry struct {
	key string
	item
}

func newDict(n int) *dict { return &dict{make([]entry, 0, n), make(map[string]int, n)} }

// Methods of a Dict.
var (
	dictKind = newKind("Dict", func(*call) (any, error) { return newDict(0), nil })

	dictGet        = define(dictKind, "get", (*dict).get)
	dictUpdate     = define(dictKind, "update", (*dict).update)
	dictAdd        = define(dictKind, "add", (*dict).add)
	dictSetDefault = define(dictKind, "setdefault", (*dict).setDefault)
	dictCas        = define(dictKind, "cas", (*dict).cas)
	dictPop        = define(dictKind, "pop", (*dict).pop)
	dictDelete     = define(dictKind, "delete", (*dict).delete)
	dictHas        = define(dictKind, "has", (*dict).has)
	dictLen        = define(dictKind, countedLen.name, (*dict).len)
	dictKeys       = define(dictKind, "keys", (*dict).keys)
	dictValues     = define(dictKind, "values", (*dict).values)
	dictAll        = define(dictKind, "items", (*dict).all)
	dictClear      = define(dictKind, "clear", (*dict).clear)
	dictFirst      = define(dictKind, "first", (*dict).first)
	dictDiscard    = define(dictKind, "discard", (*dict).discard)
	dictKeep       = define(dictKind, "keep", (*dict).keep)
)

func (d *dict) find(c *call) (k string, it item, err error) {
	if k, err = c.key(0); err != nil {
		return k, it, err
	}
	i, ok := d.places[k]
	if !ok {
		return k, it, ErrNoKey
	}
	return k, d.entries[i].item, nil
}

func (d *dict) get(c *call) error {
	_, it, err := d.find(c)
	if err != nil {
		return err
	}
	return c.give(it)
}

func (d *dict) put(k string, it item, keep keeper) {
	if i, ok := d.places[k]; ok {
		d.entries[i].release(keep)
		d.entries[i].item = it
		return
	}
	d.places[k] = len(d.entries)
	d.entries = append(d.entries, entry{k, it})
}

// remove removes the entry for k, which must exist, and returns its item. The last entry moves to
// its index.
func (d *dict) remove(k string) item {
	i, last := d.places[k], len(d.entries)-1
	it := d.entries[i].item
	d.entries[i] = d.entries[last]
	d.places[d.entries[i].key] = i
	delete(d.places, k)
	d.entries[last] = entry{}
	d.entries = d.entries[:last]
	return it
}

func (d *dict) update(c *call) error {
	if len(c.Args)%2 != 0 {
		return fmt.Errorf("%w: %d keys and values", ErrArgument, len(c.Args))
	}
	for i := 0; i < len(c.Args); i += 2 {
		if _, err := c.key(i); err != nil {
			return err // before any value is set
		}
	}
	for i := 0; i < len(c.Args); i += 2 {
		k, _ := c.key(i)
		it, _ := c.item(i + 1)
		d.put(k, it, c.s.d)
	}
	return nil
}

func (d *dict) add(c *call) error {
	k, old, err := d.find(c)
	if err != nil && err != ErrNoKey {
		return err
	}
	sum, err := c.addTo(old, 1, 2)
	if err != nil {
		return err
	}
	d.put(k, sum, c.s.d)
	return c.give(sum)
}

func (d *dict) setDefault(c *call) error {
	k, it, err := d.find(c)
	if err == ErrNoKey {
		if it, err = c.item(1); err == nil {
			d.put(k, it, c.s.d)
		}
	}
	if err != nil {
		return err
	}
	return c.give(it)
}

func (d *dict) cas(c *call) error {
	k, old, err := d.find(c)
	if err != nil && err != ErrNoKey {
		return err
	}
	if len(c.Args) != 3 {
		return fmt.Errorf("%w: %d instead of 3", ErrArgument, len(c.Args))
	}
	same := err == nil && same(old, c.Args[1])
	if same {
		it, _ := c.item(2)
		d.put(k, it, c.s.d)
	}
	return give(c, same)
}

// same reports whether two items have equal encodings and refer to the same blocks.
func same(a, b item) bool {
	return string(a.body) == string(b.body) && slices.Equal(a.blocks, b.blocks)
}

func (d *dict) pop(c *call) error {
	k, _, err := d.find(c)
	if err == nil {
		c.results = append(c.results, d.remove(k))
	}
	return err
}

func (d *dict) delete(c *call) error {
	k, _, err := d.find(c)
	if err == nil {
		d.remove(k).release(c.s.d)
	}
	return err
}

func (d *dict) has(c *call) error {
	_, _, err := d.find(c)
	if err != nil && err != ErrNoKey {
		return err
	}
	return give(c, err == nil)
}

func (d *dict) len(c *call) error { return give(c, len(d.entries)) }

// sorted returns the entries in the order of their keys.
func (d *dict) sorted() []entry {
	return slices.SortedFunc(slices.Values(d.entries), func(a, b entry) int { return strings.Compare(a.key, b.key) })
}

func (d *dict) keys(c *call) error {
	for _, e := range d.sorted() {
		c.results = append(c.results, item{body: []byte(e.key)})
	}
	return nil
}

func (d *dict) values(c *call) error {
	for _, e := range d.sorted() {
		if err := c.give(e.item); err != nil {
			return err
		}
	}
	return nil
}

func (d *dict) all(c *call) error {
	for _, e := range d.sorted() {
		c.results = append(c.results, item{body: []byte(e.key)})
		if err := c.give(e.item); err != nil {
			return err
		}
	}
	return nil
}

// first removes an arbitrary key and returns it with its value.
func (d *dict) first(c *call) error {
	if len(d.entries) == 0 {
		return ErrNoKey
	}
	k := d.entries[len(d.entries)-1].key
	c.results = append(c.results, item{body: []byte(k)}, d.remove(k))
	return nil
}

// keys returns the set of the arguments, which must be keys.
func (c *call) keys() (map[string]bool, error) {
	set := make(map[string]bool, len(c.Args))
	for i := range c.Args {
		k, err := c.key(i)
		if err != nil {
			return nil, err
		}
		set[k] = true
	}
	return set, nil
}

// discard removes the keys given as arguments.
func (d *dict) discard(c *call) error {
	named, err := c.keys()
	if err != nil {
		return err
	}
	for k := range named {
		if _, ok := d.places[k]; ok {
			d.remove(k).release(c.s.d)
		}
	}
	return nil
}

// keep removes all keys except the arguments.
func (d *dict) keep(c *call) error {
	named, err := c.keys()
	if err != nil {
		return err
	}
	for i := len(d.entries) - 1; i >= 0; i-- { // remove moves an entry that was visited already
		if k := d.entries[i].key; !named[k] {
			d.remove(k).release(c.s.d)
		}
	}
	return nil
}

func (d *dict) clear(c *call) error {
	d.close(c.s.d)
	return nil
}

func (d *dict) close(k keeper) {
	for _, e := range d.entries {
		e.release(k)
	}
	*d = *newDict(0)
}

func (d *dict) save(k keeper) undo {
	old := newDict(len(d.entries))
	for _, e := range d.entries {
		if kept, err := e.retain(k); err == nil {
			old.put(e.key, kept, k)
		}
	}
	return undo{
		restore: func() { d.close(k); *d = *old },
		discard: func() { old.close(k) },
	}
}

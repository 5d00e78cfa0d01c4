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
	if err := checkType[map[K]V](); err != nil {
		return nil, fmt.Errorf("manager: new Dict: %w", err)
	}
	p, err := newKeyed[Dict[K, V], K](ctx, m)
	return &Dict[K, V]{p}, err
}

// Get returns the value for k, or [ErrNoKey]. The caller must close the value's shared memory.
func (d *Dict[K, V]) Get(ctx context.Context, k K) (V, error) {
	return oneResult[V](d.call(ctx, dictGet, encodeArg(k)))
}

// Set sets the value for k. The server keeps a copy of v that shares the blocks of v. The caller
// must still close v. It returns [ErrArgument] if k refers to shared memory or if k or v cannot
// be encoded.
func (d *Dict[K, V]) Set(ctx context.Context, k K, v V) error {
	return d.call(ctx, dictUpdate, encodeArg(k), encodeArg(v)).noResult()
}

// Update sets the values for several keys in one call. The caller must still close the values.
func (d *Dict[K, V]) Update(ctx context.Context, all map[K]V) error {
	args := make([]argument, 0, 2*len(all))
	for k, v := range all {
		args = append(args, encodeArg(k), encodeArg(v))
	}
	return d.call(ctx, dictUpdate, args...).noResult()
}

// Add atomically adds delta to the value for k and returns the sum. A missing value counts as 0. It
// returns [ErrNotNumber] if V is not a number type.
func (d *Dict[K, V]) Add(ctx context.Context, k K, delta V) (V, error) {
	return oneResult[V](d.call(ctx, dictAdd, encodeArg(k), encodeArg(kindOf[V]()), encodeArg(delta)))
}

// SetDefault sets the value for k if there is none, and returns the current value. The caller
// must close the shared memory of the returned value, and must still close v.
func (d *Dict[K, V]) SetDefault(ctx context.Context, k K, v V) (V, error) {
	return oneResult[V](d.call(ctx, dictSetDefault, encodeArg(k), encodeArg(v)))
}

// CompareAndSwap sets the value for k to v if it equals old, and reports whether it did. Values
// are equal if their encodings are equal. If k has no value, it returns false. The caller must
// still close old and v.
func (d *Dict[K, V]) CompareAndSwap(ctx context.Context, k K, old, v V) (bool, error) {
	return oneResult[bool](d.call(ctx, dictCas, encodeArg(k), encodeArg(old), encodeArg(v)))
}

// Pop removes k and returns its value, or [ErrNoKey]. The caller must close the value's shared
// memory.
func (d *Dict[K, V]) Pop(ctx context.Context, k K) (V, error) {
	back := func(results []item) request {
		key := encodeArg(k)
		if key.err != nil || len(results) != 1 {
			return dictLen.newRequest(nil)
		}
		return dictUpdate.newRequest([]item{key.takeItem(), results[0]})
	}
	return oneResult[V](d.callUndo(ctx, back, dictPop, encodeArg(k)))
}

// PopItem removes an arbitrary key and returns it with its value. It returns [ErrNoKey] if the Dict
// is empty. The caller must close the value's shared memory.
func (d *Dict[K, V]) PopItem(ctx context.Context) (K, V, error) {
	return twoResults[K, V](d.callUndo(ctx, dictUpdate.newRequest, dictFirst))
}

// Delete removes k. It returns [ErrNoKey] if there is no such key.
func (d *Dict[K, V]) Delete(ctx context.Context, k K) error {
	return d.call(ctx, dictDelete, encodeArg(k)).noResult()
}

// Keys returns the keys, ordered by their encodings.
func (d *Dict[K, V]) Keys(ctx context.Context) ([]K, error) {
	return allResults[K](d.call(ctx, dictKeys))
}

// Values returns the values, ordered by the encodings of their keys. The caller must close the
// values' shared memory.
func (d *Dict[K, V]) Values(ctx context.Context) ([]V, error) {
	return allResults[V](d.call(ctx, dictValues))
}

// All returns a copy of the whole map, in one call. The caller must close the values' shared
// memory. If one of them cannot be decoded, All returns its error and no map.
func (d *Dict[K, V]) All(ctx context.Context) (map[K]V, error) {
	a := d.call(ctx, dictAll)
	if a.err != nil || len(a.items)%2 != 0 {
		return nil, errors.Join(a.noResult())
	}
	m := make(map[K]V, len(a.items)/2)
	for i := 0; i < len(a.items); i += 2 {
		k, err1 := unpackItem[K](a.c, a.items[i])
		v, err2 := unpackItem[V](a.c, a.items[i+1])
		if err := errors.Join(err1, err2); err != nil {
			releaseAll(a.c, a.items[i+2:])
			return nil, err
		}
		m[k] = v
	}
	return m, nil
}

// keyed is the common part of the proxies of a Dict and a Set. T is the type as which the proxy
// is sent to other processes, such as a Dict[K, V], and K is the type of the keys.
type keyed[T any, K comparable] struct{ counted[T] }

func newKeyed[T any, K comparable](ctx context.Context, m *Manager) (keyed[T, K], error) {
	p, err := createTyped[T](ctx, m, dictKind)
	return keyed[T, K]{counted[T]{p}}, err
}

// Has reports whether k is present.
func (p *keyed[T, K]) Has(ctx context.Context, k K) (bool, error) {
	return oneResult[bool](p.call(ctx, dictHas, encodeArg(k)))
}

// Clear removes all elements.
func (p *keyed[T, K]) Clear(ctx context.Context) error { return p.call(ctx, dictClear).noResult() }

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

	dictGet        = defineMethod(dictKind, "get", (*dict).get)
	dictUpdate     = defineMethod(dictKind, "update", (*dict).update)
	dictAdd        = defineMethod(dictKind, "add", (*dict).add)
	dictSetDefault = defineMethod(dictKind, "setdefault", (*dict).setDefault)
	dictCas        = defineMethod(dictKind, "cas", (*dict).cas)
	dictPop        = defineMethod(dictKind, "pop", (*dict).pop)
	dictDelete     = defineMethod(dictKind, "delete", (*dict).delete)
	dictHas        = defineMethod(dictKind, "has", (*dict).hasKey)
	dictLen        = defineMethod(dictKind, countedLen.name, (*dict).len)
	dictKeys       = defineMethod(dictKind, "keys", (*dict).keys)
	dictValues     = defineMethod(dictKind, "values", (*dict).values)
	dictAll        = defineMethod(dictKind, "items", (*dict).all)
	dictClear      = defineMethod(dictKind, "clear", (*dict).clear)
	dictFirst      = defineMethod(dictKind, "first", (*dict).popAny)
	dictDiscard    = defineMethod(dictKind, "discard", (*dict).removeKeys)
	dictKeep       = defineMethod(dictKind, "keep", (*dict).retainKeys)
)

func (d *dict) findItem(c *call) (k string, it item, err error) {
	if k, err = c.keyArg(0); err != nil {
		return k, it, err
	}
	i, ok := d.places[k]
	if !ok {
		return k, it, ErrNoKey
	}
	return k, d.entries[i].item, nil
}

func (d *dict) get(c *call) error {
	_, it, err := d.findItem(c)
	if err != nil {
		return err
	}
	return c.addItemResult(it)
}

func (d *dict) putItem(k string, it item, keep keeper) {
	if i, ok := d.places[k]; ok {
		d.entries[i].release(keep)
		d.entries[i].item = it
		return
	}
	d.places[k] = len(d.entries)
	d.entries = append(d.entries, entry{k, it})
}

// removeKey removes the entry for k, which must exist, and returns its item, which the caller
// must release. The last entry moves to its index.
func (d *dict) removeKey(k string) item {
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
		return fmt.Errorf("%w: %d keys and values, want an even number", ErrArgument, len(c.Args))
	}
	for i := 0; i < len(c.Args); i += 2 {
		if _, err := c.keyArg(i); err != nil {
			return err // before any value is set
		}
	}
	for i := 0; i < len(c.Args); i += 2 {
		k, _ := c.keyArg(i)
		it, _ := c.takeArg(i + 1)
		d.putItem(k, it, c.s.d)
	}
	return nil
}

func (d *dict) add(c *call) error {
	k, old, err := d.findItem(c)
	if err != nil && err != ErrNoKey {
		return err
	}
	sum, err := c.addDelta(old, 1, 2)
	if err != nil {
		return err
	}
	d.putItem(k, sum, c.s.d)
	return c.addItemResult(sum)
}

func (d *dict) setDefault(c *call) error {
	k, it, err := d.findItem(c)
	if err == ErrNoKey {
		if it, err = c.takeArg(1); err == nil {
			d.putItem(k, it, c.s.d)
		}
	}
	if err != nil {
		return err
	}
	return c.addItemResult(it)
}

func (d *dict) cas(c *call) error {
	k, old, err := d.findItem(c)
	if err != nil && err != ErrNoKey {
		return err
	}
	if len(c.Args) != 3 {
		return fmt.Errorf("%w: got %d arguments, want 3", ErrArgument, len(c.Args))
	}
	same := err == nil && equalItems(old, c.Args[1])
	if same {
		it, _ := c.takeArg(2)
		d.putItem(k, it, c.s.d)
	}
	return addResult(c, same)
}

// equalItems reports whether two items have equal encodings and refer to the same blocks.
func equalItems(a, b item) bool {
	return string(a.body) == string(b.body) && slices.Equal(a.blocks, b.blocks)
}

func (d *dict) pop(c *call) error {
	k, _, err := d.findItem(c)
	if err == nil {
		c.results = append(c.results, d.removeKey(k))
	}
	return err
}

func (d *dict) delete(c *call) error {
	k, _, err := d.findItem(c)
	if err == nil {
		d.removeKey(k).release(c.s.d)
	}
	return err
}

func (d *dict) hasKey(c *call) error {
	_, _, err := d.findItem(c)
	if err != nil && err != ErrNoKey {
		return err
	}
	return addResult(c, err == nil)
}

func (d *dict) len(c *call) error { return addResult(c, len(d.entries)) }

// sortedEntries returns the entries in the order of their keys.
func (d *dict) sortedEntries() []entry {
	return slices.SortedFunc(slices.Values(d.entries), func(a, b entry) int { return strings.Compare(a.key, b.key) })
}

func (d *dict) keys(c *call) error {
	for _, e := range d.sortedEntries() {
		c.results = append(c.results, item{body: []byte(e.key)})
	}
	return nil
}

func (d *dict) values(c *call) error {
	for _, e := range d.sortedEntries() {
		if err := c.addItemResult(e.item); err != nil {
			return err
		}
	}
	return nil
}

func (d *dict) all(c *call) error {
	for _, e := range d.sortedEntries() {
		c.results = append(c.results, item{body: []byte(e.key)})
		if err := c.addItemResult(e.item); err != nil {
			return err
		}
	}
	return nil
}

// popAny removes an arbitrary key and adds it and its value to the results of the call. It
// returns [ErrNoKey] if the dict is empty.
func (d *dict) popAny(c *call) error {
	if len(d.entries) == 0 {
		return ErrNoKey
	}
	k := d.entries[len(d.entries)-1].key
	c.results = append(c.results, item{body: []byte(k)}, d.removeKey(k))
	return nil
}

// keySet returns the set of the arguments, as encoded keys. It returns [ErrArgument] if one of
// them refers to shared memory.
func (c *call) keySet() (map[string]bool, error) {
	set := make(map[string]bool, len(c.Args))
	for i := range c.Args {
		k, err := c.keyArg(i)
		if err != nil {
			return nil, err
		}
		set[k] = true
	}
	return set, nil
}

// removeKeys removes the keys given as arguments. Keys that are not present are ignored. It
// returns [ErrArgument], and removes nothing, if a key refers to shared memory.
func (d *dict) removeKeys(c *call) error {
	named, err := c.keySet()
	if err != nil {
		return err
	}
	for k := range named {
		if _, ok := d.places[k]; ok {
			d.removeKey(k).release(c.s.d)
		}
	}
	return nil
}

// retainKeys removes all keys except those given as arguments. It returns [ErrArgument], and
// removes nothing, if one of them refers to shared memory.
func (d *dict) retainKeys(c *call) error {
	named, err := c.keySet()
	if err != nil {
		return err
	}
	for i := len(d.entries) - 1; i >= 0; i-- { // removeKey moves an entry that was visited already
		if k := d.entries[i].key; !named[k] {
			d.removeKey(k).release(c.s.d)
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

func (d *dict) saveState(k keeper) undo {
	old := newDict(len(d.entries))
	for _, e := range d.entries {
		if kept, err := e.retain(k); err == nil {
			old.putItem(e.key, kept, k)
		}
	}
	return undo{
		restore: func() { d.close(k); *d = *old },
		discard: func() { old.close(k) },
	}
}

package manager

import (
	"context"
	"fmt"
	"slices"
)

// A List is a list in the server. A negative index counts from the end, as in Python, except in
// [List.Slice] and [List.Replace]. Methods return [ErrIndex] if an index is out of range.
// Elements are equal if their encodings are equal. Each call is atomic. All methods may be
// called from several goroutines.
type List[T any] struct{ counted[List[T]] }

// NewList creates a List with the values vs. The caller must close it, and must still close vs. The
// error wraps wire.ErrType if values of type T cannot be sent to other processes.
func NewList[T any](ctx context.Context, m *Manager, vs ...T) (*List[T], error) {
	if err := checkType[T](); err != nil {
		return nil, fmt.Errorf("manager: new List: %w", err)
	}
	p, err := createTyped[List[T]](ctx, m, listKind, encodeArgs(vs)...)
	return &List[T]{counted[List[T]]{p}}, err
}

func encodeArgs[T any](vs []T) []argument {
	args := make([]argument, len(vs))
	for i, v := range vs {
		args[i] = encodeArg(v)
	}
	return args
}

// Append appends values, in one call. The caller must still close vs.
func (l *List[T]) Append(ctx context.Context, vs ...T) error {
	return l.call(ctx, listAppend, encodeArgs(vs)...).noResult()
}

// Insert inserts v before element i. As with Python's list.insert, a negative i counts from the
// end, and an i outside of the list means its beginning or its end. The caller must still close
// v.
func (l *List[T]) Insert(ctx context.Context, i int, v T) error {
	return l.call(ctx, listInsert, encodeArg(i), encodeArg(v)).noResult()
}

// Get returns element i. The caller must close the element's shared memory.
func (l *List[T]) Get(ctx context.Context, i int) (T, error) {
	return oneResult[T](l.call(ctx, listGet, encodeArg(i)))
}

// Set sets element i to v. The caller must still close v.
func (l *List[T]) Set(ctx context.Context, i int, v T) error {
	return l.call(ctx, listSet, encodeArg(i), encodeArg(v)).noResult()
}

// Add atomically adds delta to element i and returns the sum. It returns [ErrNotNumber] if T is not
// a number type.
func (l *List[T]) Add(ctx context.Context, i int, delta T) (T, error) {
	return oneResult[T](l.call(ctx, listAdd, encodeArg(i), encodeArg(kindOf[T]()), encodeArg(delta)))
}

// Repeat repeats the elements so that the list has n times as many, like Python's l *= n. If n is
// 0, the list becomes empty. It returns [ErrArgument] if n is negative or the list would have more
// than 2^24 elements.
func (l *List[T]) Repeat(ctx context.Context, n int) error {
	return l.call(ctx, listRepeat, encodeArg(n)).noResult()
}

// Pop removes element i and returns it. The caller must close the element's shared memory.
func (l *List[T]) Pop(ctx context.Context, i int) (T, error) {
	back := func(results []item) request {
		if i == -1 {
			return listAppend.newRequest(results)
		}
		at := encodeArg(i)
		if i < 0 { // relative to the end of a list with one element less
			at = encodeArg(i + 1)
		}
		return listInsert.newRequest(append([]item{at.takeItem()}, results...))
	}
	return oneResult[T](l.callUndo(ctx, back, listPop, encodeArg(i)))
}

// Delete removes element i.
func (l *List[T]) Delete(ctx context.Context, i int) error {
	return l.call(ctx, listDelete, encodeArg(i)).noResult()
}

// Index returns the index of the first element that equals v, or [ErrNoKey].
func (l *List[T]) Index(ctx context.Context, v T) (int, error) {
	return oneResult[int](l.call(ctx, listIndex, encodeArg(v)))
}

// Remove removes the first element that equals v. It returns [ErrNoKey] if there is none.
func (l *List[T]) Remove(ctx context.Context, v T) error {
	return l.call(ctx, listRemove, encodeArg(v)).noResult()
}

// Count returns the number of elements that equal v.
func (l *List[T]) Count(ctx context.Context, v T) (int, error) {
	return oneResult[int](l.call(ctx, listCount, encodeArg(v)))
}

// Has reports whether an element equals v.
func (l *List[T]) Has(ctx context.Context, v T) (bool, error) {
	n, err := l.Count(ctx, v)
	return n > 0, err
}

// Slice returns the elements from low to high-1, in one call. If high is -1, the slice extends
// to the end. The caller must close the elements' shared memory. It returns [ErrIndex] if low is
// negative or the bounds are out of range.
func (l *List[T]) Slice(ctx context.Context, low, high int) ([]T, error) {
	return allResults[T](l.call(ctx, listSlice, encodeArg(low), encodeArg(high)))
}

// All returns all elements, in one call. The caller must close the elements' shared memory.
func (l *List[T]) All(ctx context.Context) ([]T, error) { return l.Slice(ctx, 0, -1) }

// Replace replaces the elements from low to high-1 with vs, in one call, like Python's
// l[low:high] = vs. If high is -1, it replaces all elements from low on. vs may be longer or
// shorter than the replaced part; if it is empty, Replace deletes that part. The caller must
// still close vs. It returns [ErrIndex], and changes nothing, if low is negative or the bounds
// are out of range.
func (l *List[T]) Replace(ctx context.Context, low, high int, vs ...T) error {
	args := append([]argument{encodeArg(low), encodeArg(high)}, encodeArgs(vs)...)
	return l.call(ctx, listReplace, args...).noResult()
}

// Sort sorts numbers or strings in ascending order, in one call. If T is another type, it returns
// [ErrNotOrdered] and the list is unchanged.
func (l *List[T]) Sort(ctx context.Context) error {
	return l.call(ctx, listSort, encodeArg(kindOf[T]())).noResult()
}

// SortFunc sorts the elements with compare, like [slices.SortStableFunc], in a transaction,
// either the one of ctx or a new one, so that no other call sees the list meanwhile. compare
// must not retain or close the shared memory of its arguments.
func (l *List[T]) SortFunc(ctx context.Context, compare func(a, b T) int) error {
	c, err := l.openClient()
	if err != nil {
		return err
	}
	return c.runInTransaction(ctx, func(tx context.Context) error {
		vs, err := l.All(tx)
		if err != nil {
			return err
		}
		slices.SortStableFunc(vs, compare)
		return l.Replace(tx, 0, -1, vs...)
	})
}

// Reverse reverses the order of the elements.
func (l *List[T]) Reverse(ctx context.Context) error { return l.call(ctx, listReverse).noResult() }

// A list is the server's state of a List.
type list struct{ items []item }

// Methods of a List.
var (
	listKind = newKind("List", newList)

	listAppend  = defineMethod(listKind, "append", (*list).append)
	listInsert  = defineMethod(listKind, "insert", (*list).insert)
	listGet     = defineMethod(listKind, "get", (*list).get)
	listSet     = defineMethod(listKind, "set", (*list).set)
	listAdd     = defineMethod(listKind, "add", (*list).add)
	listPop     = defineMethod(listKind, "pop", (*list).pop)
	listDelete  = defineMethod(listKind, "delete", (*list).delete)
	listIndex   = defineMethod(listKind, "index", (*list).index)
	_           = defineMethod(listKind, countedLen.name, (*list).len)
	listSlice   = defineMethod(listKind, "slice", (*list).slice)
	listReplace = defineMethod(listKind, "replace", (*list).replace)
	listReverse = defineMethod(listKind, "reverse", (*list).reverse)
	listSort    = defineMethod(listKind, "sort", (*list).sort)
	listRepeat  = defineMethod(listKind, "repeat", (*list).repeat)
	listRemove  = defineMethod(listKind, "remove", (*list).remove)
	listCount   = defineMethod(listKind, "count", (*list).count)
)

func newList(c *call) (any, error) {
	l := new(list)
	for i := range c.Args {
		it, _ := c.takeArg(i)
		l.items = append(l.items, it)
	}
	return l, nil
}

// indexArg decodes argument 0 as the index of one of n elements and returns the index counted
// from 0. A negative argument counts from the end. It returns [ErrIndex] if the index is out of
// range.
func indexArg(c *call, n int) (int, error) { return boundedIndexArg(c, n, n) }

// insertIndexArg is like [indexArg], but also accepts the index n, the end.
func insertIndexArg(c *call, n int) (int, error) { return boundedIndexArg(c, n, n+1) }

func boundedIndexArg(c *call, n, limit int) (int, error) {
	i, err := decodeArg[int](c, 0)
	from := i
	if i < 0 {
		i += n
	}
	if err == nil && (i < 0 || i >= limit) {
		err = fmt.Errorf("%w: index %d, length %d", ErrIndex, from, n)
	}
	return i, err
}

func (l *list) append(c *call) error {
	for i := range c.Args {
		it, _ := c.takeArg(i)
		l.items = append(l.items, it)
	}
	return nil
}

func (l *list) insert(c *call) error {
	i, err := decodeArg[int](c, 0)
	if err != nil {
		return err
	}
	if i < 0 {
		i += len(l.items)
	}
	it, err := c.takeArg(1)
	if err == nil {
		l.items = slices.Insert(l.items, min(max(i, 0), len(l.items)), it)
	}
	return err
}

func (l *list) get(c *call) error {
	i, err := indexArg(c, len(l.items))
	if err != nil {
		return err
	}
	return c.addItemResult(l.items[i])
}

func (l *list) set(c *call) error {
	i, err := indexArg(c, len(l.items))
	if err != nil {
		return err
	}
	it, err := c.takeArg(1)
	if err == nil {
		l.items[i].release(c.s.d)
		l.items[i] = it
	}
	return err
}

func (l *list) add(c *call) error {
	i, err := indexArg(c, len(l.items))
	if err != nil {
		return err
	}
	sum, err := c.addDelta(l.items[i], 1, 2)
	if err != nil {
		return err
	}
	l.items[i].release(c.s.d)
	l.items[i] = sum
	return c.addItemResult(sum)
}

func (l *list) pop(c *call) error {
	i, err := indexArg(c, len(l.items))
	if err == nil {
		c.results = append(c.results, l.items[i])
		l.items = slices.Delete(l.items, i, i+1)
	}
	return err
}

func (l *list) delete(c *call) error {
	i, err := indexArg(c, len(l.items))
	if err == nil {
		l.items[i].release(c.s.d)
		l.items = slices.Delete(l.items, i, i+1)
	}
	return err
}

// findIndex returns the index of the first element that equals argument 0 of the call, or
// [ErrNoKey].
func (l *list) findIndex(c *call) (int, error) {
	if len(c.Args) != 1 {
		return 0, fmt.Errorf("%w: got %d arguments, want 1", ErrArgument, len(c.Args))
	}
	i := slices.IndexFunc(l.items, func(it item) bool { return equalItems(it, c.Args[0]) })
	if i < 0 {
		return 0, ErrNoKey
	}
	return i, nil
}

func (l *list) index(c *call) error {
	i, err := l.findIndex(c)
	if err != nil {
		return err
	}
	return addResult(c, i)
}

func (l *list) remove(c *call) error {
	i, err := l.findIndex(c)
	if err == nil {
		l.items[i].release(c.s.d)
		l.items = slices.Delete(l.items, i, i+1)
	}
	return err
}

func (l *list) count(c *call) error {
	if len(c.Args) != 1 {
		return fmt.Errorf("%w: got %d arguments, want 1", ErrArgument, len(c.Args))
	}
	n := 0
	for _, it := range l.items {
		if equalItems(it, c.Args[0]) {
			n++
		}
	}
	return addResult(c, n)
}

func (l *list) len(c *call) error { return addResult(c, len(l.items)) }

// boundsArgs decodes arguments 0 and 1 as the bounds low and high of a slice of n elements. The
// second one may be -1 for the end. It returns [ErrIndex] if the bounds are out of range.
func boundsArgs(c *call, n int) (low, high int, err error) {
	if low, err = decodeArg[int](c, 0); err != nil {
		return 0, 0, err
	}
	if high, err = decodeArg[int](c, 1); err != nil {
		return 0, 0, err
	}
	if high == -1 {
		high = n
	}
	if low < 0 || high < low || high > n {
		err = fmt.Errorf("%w: elements %d to %d, length %d", ErrIndex, low, high, n)
	}
	return low, high, err
}

func (l *list) slice(c *call) error {
	low, high, err := boundsArgs(c, len(l.items))
	if err != nil {
		return err
	}
	for _, it := range l.items[low:high] {
		if err := c.addItemResult(it); err != nil {
			return err
		}
	}
	return nil
}

func (l *list) replace(c *call) error {
	low, high, err := boundsArgs(c, len(l.items))
	if err != nil {
		return err
	}
	items := make([]item, len(c.Args)-2)
	for i := range items {
		items[i], _ = c.takeArg(2 + i)
	}
	releaseAll(c.s.d, l.items[low:high])
	l.items = slices.Replace(l.items, low, high, items...)
	return nil
}

// maxItems limits the length of a list after Repeat.
const maxItems = 1 << 24

func (l *list) repeat(c *call) error {
	n, err := decodeArg[int](c, 0)
	if err != nil {
		return err
	}
	if n < 0 || n > 0 && len(l.items) > maxItems/n {
		return fmt.Errorf("%w: repeat %d elements %d times: want 0 or more times and at most %d elements",
			ErrArgument, len(l.items), n, maxItems)
	}
	if n == 0 {
		l.close(c.s.d)
		return nil
	}
	all := slices.Repeat(l.items, n)
	for i := len(l.items); i < len(all); i++ {
		if all[i], err = all[i].retain(c.s.d); err != nil {
			releaseAll(c.s.d, all[len(l.items):i])
			return err
		}
	}
	l.items = all
	return nil
}

func (l *list) sort(c *call) error {
	name, err := decodeArg[string](c, 0)
	if err != nil {
		return err
	}
	sort, ok := orders[name]
	if !ok {
		return fmt.Errorf("%w: %s", ErrNotOrdered, name)
	}
	return sort(l.items)
}

func (l *list) reverse(*call) error {
	slices.Reverse(l.items)
	return nil
}

func (l *list) close(k keeper) {
	releaseAll(k, l.items)
	l.items = nil
}

func (l *list) saveState(k keeper) undo {
	old := new(list)
	for _, it := range l.items {
		if kept, err := it.retain(k); err == nil {
			old.items = append(old.items, kept)
		}
	}
	return undo{
		restore: func() { l.close(k); l.items = old.items },
		discard: func() { old.close(k) },
	}
}

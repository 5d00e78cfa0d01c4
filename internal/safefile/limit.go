package safefile

// A Limit bounds the total memory that one file requests in several pieces. It must not be used
// concurrently.
type Limit struct {
	Most   int64  // limit in bytes; 0 for the default limits of CheckSize
	Fills  int64  // number of bytes that the file can fill, or UnknownSize
	Remedy string // tells the user how to raise the limit

	total int64
	seen  int64 // total at the last comparison with the memory limit; allocated by now
}

// Add adds n bytes to the total. n must not be negative. Add returns an error that wraps
// [ErrLimit] if the total exceeds the limit of [CheckSize]; n stays included.
func (t *Limit) Add(n int64) error {
	if err := t.Map(n); err != nil {
		return err
	}
	if t.total-t.seen <= AlwaysAllowed {
		return nil
	}
	more := t.total - t.seen
	t.seen = t.total
	return CheckSize(more, UnknownSize, t.Most, t.Remedy)
}

// Map adds n bytes that are not allocated, such as mapped bytes, to the same total as [Limit.Add].
// It returns an error that wraps [ErrLimit] if the total exceeds t.Most or, if that is 0, exceeds
// both t.Fills and [AlwaysAllowed].
func (t *Limit) Map(n int64) error {
	if t.total += n; t.total < 0 {
		return limitError(n, t.Remedy, "the total overflows")
	}
	return CheckPlausible(t.total, t.Fills, t.Most, t.Remedy)
}

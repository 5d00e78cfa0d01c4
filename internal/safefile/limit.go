package safefile

// A Limit bounds the sum of the memory that one file requests in several pieces.
type Limit struct {
	Most   int64  // limit in bytes; 0 for the limits that CheckSize applies by default
	Fills  int64  // number of bytes that the file can fill, or UnknownSize
	Remedy string // tells the user how to raise the limit

	total int64
	seen  int64 // of the total, when it was last compared with what this process may take: that much is taken by now
}

// Add returns an error that wraps ErrLimit where n bytes more are too many.
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

// Map is Add for what does not go into memory.
func (t *Limit) Map(n int64) error {
	if t.total += n; t.total < 0 {
		return refuse(n, t.Remedy, "it has asked for as much before")
	}
	return CheckPlausible(t.total, t.Fills, t.Most, t.Remedy)
}

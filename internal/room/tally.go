package room

// A Tally adds up what one file asks for, piece by piece.
type Tally struct {
	Most   int64  // 0 for what the file can fill and this process may take
	Fills  int64  // what the file can fill, or Unknown
	Remedy string // how a user gets more

	total int64
	seen  int64 // of the total, when it was last compared with what this process may take: that much is taken by now
}

// Add returns an error that wraps ErrLimit where n bytes more are too many.
func (t *Tally) Add(n int64) error {
	if err := t.Map(n); err != nil {
		return err
	}
	if t.total-t.seen <= Always {
		return nil
	}
	more := t.total - t.seen
	t.seen = t.total
	return Check(more, Unknown, t.Most, t.Remedy)
}

// Map is Add for what does not go into memory.
func (t *Tally) Map(n int64) error {
	if t.total += n; t.total < 0 {
		return refuse(n, t.Remedy, "it has asked for as much before")
	}
	return Plausible(t.total, t.Fills, t.Most, t.Remedy)
}

package model

// fingerprints is a set of non-zero 64-bit hashes. Each has the hash of the state from which it was
// reached. The table uses open addressing, with 16 bytes for an entry.
type fingerprints struct {
	entries []entry
	n       int
}

type entry struct{ hash, parent uint64 }

func newFingerprints(size int) *fingerprints {
	return &fingerprints{entries: make([]entry, size)} // size is a power of two
}

// add reports whether hash was not in the set before.
func (f *fingerprints) add(hash, parent uint64) bool {
	e := f.find(hash)
	if e.hash == hash {
		return false
	}
	*e = entry{hash, parent}
	f.n++
	if f.n*10 > len(f.entries)*7 {
		f.grow()
	}
	return true
}

// parent returns the hash from which hash was reached, 0 for the initial state.
func (f *fingerprints) parent(hash uint64) uint64 { return f.find(hash).parent }

func (f *fingerprints) find(hash uint64) *entry {
	mask := uint64(len(f.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if e := &f.entries[i]; e.hash == hash || e.hash == 0 {
			return e
		}
	}
}

func (f *fingerprints) grow() {
	old := f.entries
	f.entries = make([]entry, 2*len(old))
	for _, e := range old {
		if e.hash != 0 {
			*f.find(e.hash) = e
		}
	}
}

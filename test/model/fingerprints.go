package model

// fingerprints is a set of nonzero 64-bit hashes, each with the hash of its predecessor state. It
// is a hash table with open addressing and 16 bytes per entry.
type fingerprints struct {
	entries []entry
	n       int
}

type entry struct{ hash, parent uint64 }

func newFingerprints(size int) *fingerprints {
	return &fingerprints{entries: make([]entry, size)} // size must be a power of two
}

// add inserts hash and reports whether it was not in the set before. hash must not be 0.
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

// parent returns the predecessor of hash, or 0 for the initial state and a hash that is not in
// the set.
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

package pickle

// Limits bounds what a pickle may ask for. A zero field stands for its default.
type Limits struct {
	Bytes int64 // the pickle as a whole; default 1 GiB
	Depth int   // values in values; default 1000, as in Python
	Items int   // the values that it makes and remembers; default 4 Mi
}

func (l Limits) orDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 1 << 30
	}
	if l.Depth == 0 {
		l.Depth = 1000
	}
	if l.Items == 0 {
		l.Items = 4 << 20
	}
	return l
}

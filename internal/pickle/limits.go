package pickle

// Limits bounds the resources that a pickle may use. A zero field selects the default.
type Limits struct {
	Bytes int64 // size of the pickle; default 1 GiB
	Depth int   // nesting depth; default 1000, as in Python
	Items int   // number of created and memoized values; default 4 Mi
}

func (l Limits) withDefaults() Limits {
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

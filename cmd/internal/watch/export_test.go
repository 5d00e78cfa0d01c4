package watch

var (
	ListenWith = listen
	Thin       = thin
	Decode     = decode
)

const MostSamples = mostSamples

type Sample = sample

func (s *Server) Samples() int {
	s.reader.mu.Lock()
	defer s.reader.mu.Unlock()
	return len(s.reader.history)
}

// At says from where a server sees programs.
func (o Options) At(place string) Options {
	o.place = place
	return o
}

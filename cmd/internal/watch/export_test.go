package watch

var (
	ListenWith = listen
	Thin       = thin
)

const MostSamples = mostSamples

type Sample = sample

func (s *Server) Samples() int {
	s.reader.mu.Lock()
	defer s.reader.mu.Unlock()
	return len(s.reader.history)
}

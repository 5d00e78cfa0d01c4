package watch

import (
	"testing"
	"time"
)

var (
	ListenWith = listen
	Thin       = thinSamples
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

// SetPatience has browsers be left sooner, until the test ends.
func SetPatience(t *testing.T, d time.Duration) {
	before := patience
	patience = d
	t.Cleanup(func() { patience = before })
}

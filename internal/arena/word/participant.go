package word

// Participant states. The epoch in the upper half increases when a seat becomes free again.
const (
	ParticipantFree = iota
	ParticipantLive
	ParticipantDead    // being reaped
	ParticipantJoining // has its proof of life, and holds nothing yet
)

// A Participant holds the state of a seat: epoch 32 | state 32.
type Participant uint64

// Epoch returns the number of participants that have left the seat, modulo 2^32.
func (w Participant) Epoch() uint32 { return uint32(w >> 32) }

// State returns ParticipantFree, ParticipantLive, ParticipantDead or ParticipantJoining.
func (w Participant) State() uint64 { return uint64(w & 0xff) }

// HasState reports whether the seat is in the state.
func (w Participant) HasState(state uint64) bool { return w.State() == state }

// WithState returns w with another state.
func (w Participant) WithState(state uint64) Participant {
	return w&^0xff | Participant(state)
}

// NextEpoch returns the word of the seat after it has become free again.
func (w Participant) NextEpoch() Participant { return w&^0xff + 1<<32 }

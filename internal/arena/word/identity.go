package word

// An identity names a participant in the upper bits of a word that records the participant's share
// of an object. Neither the seat nor the process ID alone would suffice, because both are reused.
//
//	63    42 41    20 19                 0
//	| pid  | epoch  | defined by the word |
const (
	PIDShift     = 42
	EpochShift   = 20
	EpochMask    = 1<<22 - 1
	IdentityMask = 1<<64 - 1<<EpochShift
	CountMask    = 1<<EpochShift - 1

	// SeatShift is the position of the seat in a lock word and in the word dead of a cell.
	SeatShift = 12
	// Unborn is a bit of the word dead of a cell: the process may have died before it had a seat.
	Unborn = 1 << 11
)

// MakeIdentity packs a process ID, which must be less than 1<<22, and the low 22 bits of an epoch.
func MakeIdentity(pid, epoch uint64) uint64 { return pid<<PIDShift | epoch&EpochMask<<EpochShift }

package word

// Limits that the fields of a word can express.
const (
	MaxParticipants = 256
	MaxBlocks       = 1 << 22
	MaxTransit      = 1<<12 - 1 // messages that hold one block
)

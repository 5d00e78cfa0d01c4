package arena

import "github.com/shoal-mp/shoal/internal/arena/word"

// A Handle names a block of a domain across processes.
type Handle = word.Handle

// MaxBlocks is the maximum number of blocks in a domain.
const MaxBlocks = word.MaxBlocks

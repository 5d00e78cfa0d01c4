package kernel

// Levels are the names of the levels of this machine.
func Levels() (names []string) {
	for _, l := range levels {
		names = append(names, l.name)
	}
	return names
}

// Use makes a level the current one, until restore.
func Use(name string) (restore func()) {
	before := current
	for _, l := range levels {
		if l.name == name {
			current = l
		}
	}
	return func() { current = before }
}

// Deepest and BlockDeep are where a product is divided along the sums.
const (
	Deepest   = deepest
	BlockDeep = blockDeep
)

// CastSizes are the bytes of an element before and after each cast.
var CastSizes = castSizes

// Functions is how many there are.
const Functions Function = functions

// Stream is the part of Repeat for what is longest.
func Stream(dst, one []byte) int { return streamLines(dst, one) }

// Streamed is the length from which on Repeat calls it.
const Streamed = streamed

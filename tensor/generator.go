package tensor

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/internal/seed"
)

// A Generator generates pseudo-random numbers, the same on every machine for one seed. It is
// O'Neill's PCG with 128 bits of state (PCG XSL RR 128/64), with independent streams. A Generator
// may be used concurrently, but the scheduler then decides which goroutine gets which number. For
// repeatable runs, each goroutine should have its own generator; see [Generator.Fork]. The zero
// Generator must not be used: see [NewGenerator].
type Generator struct {
	mu             sync.Mutex
	hi, lo         uint64 // state
	streamHi, odd  uint64 // increment, which must be odd
	seed, streamID uint64
}

// NewGenerator returns a generator with the given seed.
func NewGenerator(seed uint64) *Generator { return newStream(seed, 0) }

func newStream(seed, stream uint64) *Generator {
	g := &Generator{seed: seed, streamID: stream}
	s := stream
	g.streamHi, g.odd = splitMix64(&s), splitMix64(&s)|1
	g.hi, g.lo = splitMix64(&seed), splitMix64(&seed)
	return g
}

// splitMix64 advances the state *s and returns the next number of the SplitMix64 generator, which
// spreads similar seeds.
func splitMix64(s *uint64) uint64 {
	*s += 0x9e3779b97f4a7c15
	z := *s
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// PCG's 128-bit multiplier.
const (
	multiplierHi = 2549297995355413924
	multiplierLo = 4865540595714422341
)

func (g *Generator) nextUint64() uint64 {
	hi, lo := bits.Mul64(g.lo, multiplierLo)
	hi += g.hi*multiplierLo + g.lo*multiplierHi
	var carry uint64
	g.lo, carry = bits.Add64(lo, g.odd, 0)
	g.hi, _ = bits.Add64(hi, g.streamHi, carry)
	return bits.RotateLeft64(g.hi^g.lo, -int(g.hi>>58))
}

// ahead returns a generator that begins n numbers after g. g.mu must be held. A state after n
// steps is a multiple of the present one plus a constant, and doubling the steps gives both
// (Brown, 1994, Random number generation with arbitrary strides).
func (g *Generator) ahead(n uint64) *Generator {
	rule, factor, term := [4]uint64{multiplierHi, multiplierLo, g.streamHi, g.odd}, [2]uint64{0, 1}, [2]uint64{}
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			factor[0], factor[1] = multiply128(factor[0], factor[1], rule[0], rule[1])
			term[0], term[1] = multiply128(term[0], term[1], rule[0], rule[1])
			term[0], term[1] = add128(term[0], term[1], rule[2], rule[3])
		}
		rule = doubleSteps(rule)
	}
	next := &Generator{streamHi: g.streamHi, odd: g.odd, seed: g.seed, streamID: g.streamID}
	next.hi, next.lo = multiply128(g.hi, g.lo, factor[0], factor[1])
	next.hi, next.lo = add128(next.hi, next.lo, term[0], term[1])
	return next
}

// skip advances g by n numbers. g.mu must be held.
func (g *Generator) skip(n uint64) {
	end := g.ahead(n)
	g.hi, g.lo = end.hi, end.lo
}

// doubleSteps returns the rule for twice the steps: factor², increment·(factor+1). A rule is a
// factor and an increment, each as the high and the low 64 bits.
func doubleSteps(f [4]uint64) (rule [4]uint64) {
	rule[0], rule[1] = multiply128(f[0], f[1], f[0], f[1])
	hi, lo := add128(f[0], f[1], 0, 1)
	rule[2], rule[3] = multiply128(f[2], f[3], hi, lo)
	return rule
}

// add128 returns the low 128 bits of a sum.
func add128(aHi, aLo, bHi, bLo uint64) (hi, lo uint64) {
	lo, carry := bits.Add64(aLo, bLo, 0)
	return aHi + bHi + carry, lo
}

// fill sets the elements of to to the next numbers of g. g.mu must be held. A state follows from
// the state 16 steps earlier by a rule of the same form, so a kernel advances 16 states at once.
func (g *Generator) fill(to []uint64) {
	const few = 4 * kernel.States
	if len(to) >= few {
		l := lanes.Get().(*generatorLanes)
		defer lanes.Put(l)
		first := to[:kernel.States]
		for i := range first {
			first[i] = g.nextUint64()
			l.states[i], l.states[kernel.States+i] = g.hi, g.lo
		}
		l.setRule(g.streamHi, g.odd)
		to = to[kernel.States:]
		if done := kernel.Congruence(&l.states, &l.rule, to); done > 0 {
			to = to[done:]
			g.hi, g.lo = l.states[kernel.States-1], l.states[2*kernel.States-1]
		}
	}
	for i := range to {
		to[i] = g.nextUint64()
	}
}

// generatorLanes contains consecutive states of a generator, and the rule that advances all of
// them.
type generatorLanes struct {
	states    [2 * kernel.States]uint64
	rule      [4]uint64
	increment [2]uint64 // for one step
}

// setRule sets l.rule to the rule for kernel.States steps with the increment hi, lo, which must
// not be 0.
func (l *generatorLanes) setRule(hi, lo uint64) {
	if l.increment == [2]uint64{hi, lo} {
		return // cached from the previous call
	}
	l.increment = [2]uint64{hi, lo}
	l.rule = [4]uint64{multiplierHi, multiplierLo, hi, lo}
	for range bits.Len(kernel.States - 1) {
		l.rule = doubleSteps(l.rule)
	}
}

var lanes = sync.Pool{New: func() any { return new(generatorLanes) }}

// multiply128 returns the low 128 bits of a product.
func multiply128(aHi, aLo, bHi, bLo uint64) (hi, lo uint64) {
	hi, lo = bits.Mul64(aLo, bLo)
	return hi + aHi*bLo + aLo*bHi, lo
}

// Uint64 returns 64 random bits.
func (g *Generator) Uint64() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.nextUint64()
}

// Float64 returns a number in [0, 1), a multiple of 2^-53.
func (g *Generator) Float64() float64 { return unitFloat(g.Uint64()) }

func unitFloat(v uint64) float64 { return float64(int64(v>>11)) / (1 << 53) }

// IntN returns a uniformly distributed number in [0, n). It panics unless n is positive.
func (g *Generator) IntN(n int) int {
	if n < 1 {
		misuse(ErrArgument, "IntN(%d): want at least 1", n)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return int(g.uniformBelow(uint64(n)))
}

// uniformBelow returns a uniformly distributed number in [0, n). n must not be 0, and g.mu must
// be held.
func (g *Generator) uniformBelow(n uint64) uint64 {
	for range 128 { // less than half of the values are rejected
		if v, ok := scaleRandom(g.nextUint64(), n); ok {
			return v
		}
	}
	misuse(ErrMisuse, "Generator without a seed: want one of NewGenerator")
	return 0
}

// scaleRandom maps random bits to a number in [0, n) by Lemire's method. ok is false for the few
// values that must be rejected, because they would make some results more likely. n must not be
// 0.
func scaleRandom(random, n uint64) (v uint64, ok bool) {
	v, rest := bits.Mul64(random, n)
	return v, rest >= n || rest >= -n%n
}

// Shuffle randomizes the order of n elements. swap must exchange the elements i and j, as for
// rand.Shuffle.
func (g *Generator) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, g.IntN(i+1))
	}
}

// Fork returns a new generator with g's seed and another stream. The streams of one seed are
// independent. The result depends only on the seed and the stream, not on g's position. If g is not
// a fork, stream 0 begins as g began.
func (g *Generator) Fork(stream uint64) *Generator {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.streamID == 0 {
		return newStream(g.seed, stream)
	}
	id := g.streamID
	return newStream(g.seed, splitMix64(&id)^stream)
}

// stateWords is the number of words of a state.
const stateWords = 6

// State returns the state of the generator, for [Generator.SetState].
func (g *Generator) State() []byte {
	b := make([]byte, 8*stateWords) // does not escape if State is inlined and the caller drops it
	g.putState(b)
	return b
}

// putState writes the state to b, which must have 8*stateWords bytes.
func (g *Generator) putState(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range [stateWords]uint64{g.hi, g.lo, g.streamHi, g.odd, g.seed, g.streamID} {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
}

// SetState sets the generator to a state that [Generator.State] returned. The error wraps
// [ErrState] for other bytes.
func (g *Generator) SetState(b []byte) error {
	if len(b) != 8*stateWords {
		return fmt.Errorf("set generator state: got %d bytes, want %d: %w", len(b), 8*stateWords, ErrState)
	}
	var w [stateWords]uint64
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	if w[3]&1 == 0 {
		return fmt.Errorf("set generator state: got an even increment, want an odd one: %w", ErrState)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hi, g.lo, g.streamHi, g.odd, g.seed, g.streamID = w[0], w[1], w[2], w[3], w[4], w[5]
	return nil
}

// reseed resets g to the first number of seed.
func (g *Generator) reseed(seed uint64) {
	if err := g.SetState(NewGenerator(seed).State()); err != nil {
		panic(err) // cannot happen: it is a valid state
	}
}

// InitialSeed returns the seed of g. After SetState it is the seed of the generator that returned
// the state.
func (g *Generator) InitialSeed() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seed
}

var defaultGenerator = NewGenerator(0)

// The seed of a process is the seed of its default generator.
func init() { seed.Process.Watch(defaultGenerator.reseed) }

// DefaultGenerator returns the generator that functions use for a nil *Generator.
//
// In the first process of a program, its seed comes from the system's entropy. In a worker, its
// seed is derived from the seed of the parent process, the function, the rank and the number of
// restarts. Therefore no two workers draw the same numbers, and after a [ManualSeed] in the first
// process each worker draws the same numbers in every run.
//
// Workers on goroutines share the generator of their process. Such a worker should call
// NewGenerator with shoal.Seed for a generator of its own.
func DefaultGenerator() *Generator { return defaultGenerator }

// ManualSeed seeds the default generator of this process. Workers that this process starts later
// derive their seeds from s.
func ManualSeed(s uint64) { seed.Process.Set(s) }

// InitialSeed returns the seed of the last [ManualSeed] in this process, or else the initial seed
// of [DefaultGenerator]. A program should log it, so that a run can be repeated.
func InitialSeed() uint64 { return seed.Process.Initial() }

// marshal encodes the state: a generator is sent to other processes as a copy.
func (g *Generator) marshal(e *codec.Encoder) error {
	e.Bytes(g.State())
	return nil
}

// unmarshal decodes a state. The error wraps ErrState.
func (g *Generator) unmarshal(d *codec.Decoder) error {
	b, err := d.Bytes()
	if err != nil {
		return err
	}
	return g.SetState(b)
}

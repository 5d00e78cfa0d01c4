package model_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

const a, b, both = 1, 2, 3

// hand: one block goes to two consumers, first as a copy, then moved.
var hand = model.Programs{
	{{model.Alloc, a}, {model.Put, a}, {model.Move, a}},
	{{model.Get, 0}, {model.Release, both}},
	{{model.Get, 0}, {model.Release, both}},
}

// forward: what is received is sent on.
var forward = model.Programs{
	{{model.Alloc, a}, {model.Move, a}},
	{{model.Get, 0}, {model.Move, a}},
	{{model.Get, 0}, {model.Release, both}},
}

// again: a receiver puts a copy of what it received and keeps it, the block is allocated again
// later.
var again = model.Programs{
	{{model.Alloc, a}, {model.Put, a}, {model.Release, a}, {model.Alloc, a}, {model.Release, a}},
	{{model.Get, 0}, {model.Put, a}, {model.Release, a}},
	{{model.Get, 0}, {model.Release, both}},
}

// pair: a message carries two blocks, and one of them is put again alone.
var pair = model.Programs{
	{{model.Alloc, a}, {model.Alloc, b}, {model.Move, both}},
	{{model.Get, 0}, {model.Put, b}, {model.Release, both}},
	{{model.Get, 0}, {model.Release, both}},
}

// cross: two messages share blocks while both are received.
var cross = model.Programs{
	{{model.Alloc, a}, {model.Alloc, b}, {model.Put, a}, {model.Put, b}, {model.Put, both}, {model.Release, both}},
	{{model.Get, 0}, {model.Release, both}},
	{{model.Get, 0}, {model.Release, both}},
}

// lend: a handle goes by a side channel while another consumer frees.
var lend = model.Programs{
	{{model.Import, a}, {model.Release, a}},
	{{model.Alloc, a}, {model.Put, a}, {model.Send, a}, {model.Release, a}},
	{{model.Get, 0}, {model.Release, a}},
}

// repeat: one lane puts the same block three times into a ring of two.
var repeat = model.Programs{
	{{model.Alloc, a}, {model.Put, a}, {model.Put, a}, {model.Put, a}, {model.Release, a}},
}

// thrice: one lane puts the same block three times, moved at last, while two others receive it.
var thrice = model.Programs{
	{{model.Alloc, a}, {model.Put, a}, {model.Put, a}, {model.Move, a}, {model.Release, a}},
	{{model.Get, 0}, {model.Release, a}},
	{{model.Get, 0}, {model.Release, a}},
}

// overlap: a block of a message that is being received is put again alone.
var overlap = model.Programs{
	{{model.Alloc, a}, {model.Alloc, b}, {model.Put, both}, {model.Put, b}, {model.Release, both}},
	{{model.Get, 0}, {model.Release, both}},
	{{model.Get, 0}, {model.Release, both}},
}

// swap: two workers put both blocks at the same time.
var swap = model.Programs{
	{{model.Alloc, a}, {model.Alloc, b}, {model.Put, both}, {model.Put, both}, {model.Release, both}},
	{{model.Get, 0}, {model.Put, both}, {model.Release, both}},
}

// reborn: a seat that was reaped sends again while messages of its dead participant are still in
// the ring.
var reborn = model.Programs{
	{{model.Alloc, a}, {model.Put, a}, {model.Put, a}, {model.Release, a}, {model.Get, 0}, {model.Put, a},
		{model.Put, a}, {model.Release, a}},
	{{model.Get, 0}, {model.Release, a}},
}

func TestSeatReuse(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]model.Programs{"reborn": reborn, "hand": hand, "forward": forward,
		"overlap": overlap} {
		t.Run(name, func(t *testing.T) {
			holds(t, model.Explore(model.Lifetime{Programs: p, Kills: kills(2), Reuse: true}.Model(), limit))
		})
	}
}

func TestSeatReuseMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{model.OpseqReset, model.ReuseEarly, model.HelpAnyLap} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Lifetime{Programs: reborn, Kills: 2, Reuse: true, Bug: bug}.Model(), limit))
		})
	}
}

// contest: workers want the same block, and one sends it.
var contest = model.Programs{
	{{model.Take, a}, {model.Move, a}, {model.Take, a}, {model.Release, a}},
	{{model.Take, a}, {model.Release, a}, {model.Get, 0}, {model.Release, a}},
	{{model.Get, 0}, {model.Release, a}, {model.Take, a}, {model.Release, a}},
}

// byTake returns the program with the allocations of Take.
func byTake(p model.Programs) model.Programs {
	for i := range p {
		p[i] = slices.Clone(p[i])
		for j := range p[i] {
			if p[i][j].Do == model.Alloc {
				p[i][j].Do = model.Take
			}
		}
	}
	return p
}

// TestLifetimeTake allocates by the own bit first, without a stamp, all blocks or some.
func TestLifetimeTake(t *testing.T) {
	t.Parallel()
	all := map[string]model.Programs{"hand": byTake(hand), "forward": byTake(forward), "again": byTake(again),
		"lend": byTake(lend)}
	mixed := contest
	mixed[1] = slices.Clone(contest[1])
	mixed[1][0].Do = model.Alloc
	all["contest"], all["contest, one with a stamp"] = contest, mixed
	for name, p := range all {
		t.Run(name, func(t *testing.T) {
			holds(t, model.Explore(model.Lifetime{Programs: p, Kills: kills(2)}.Model(), limit))
		})
	}
}

func TestLifetimeTakeMutations(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{model.TakeUnowned, model.TakeForgets} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Lifetime{Programs: contest, Kills: 2, Bug: bug}.Model(), limit))
		})
	}
}

var programs = map[string]model.Programs{
	"hand": hand, "forward": forward, "again": again, "pair": pair, "cross": cross, "lend": lend,
	"repeat": repeat, "thrice": thrice, "overlap": overlap, "swap": swap,
}

func TestLifetime(t *testing.T) {
	t.Parallel()
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			holds(t, model.Explore(model.Lifetime{Programs: p, Kills: kills(2)}.Model(), limit))
		})
	}
}

// Calls keep their deadlines where others are stopped: puts give up, and gets end late. What a put
// that gave up was to move is its worker's to release.
func TestLifetimeDeadlines(t *testing.T) {
	t.Parallel()
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			for i := range p {
				p[i] = append(slices.Clone(p[i]), model.Op{Do: model.Release, Blocks: both})
			}
			holds(t, model.Explore(model.Lifetime{Programs: p, Kills: kills(1), Ends: 1}.Model(), limit))
		})
	}
}

func TestLifetimeDeadlineMutations(t *testing.T) {
	t.Parallel()
	for bug, p := range map[string]model.Programs{model.EndStamped: swap, model.LateUnheld: overlap} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Lifetime{Programs: p, Kills: 1, Ends: 1, Bug: bug}.Model(), limit))
		})
	}
}

// Three changes that the protocol allows: cheaper releases, one slot state less, and no look at
// opseq in a get that takes over.
func TestLifetimeVariants(t *testing.T) {
	t.Parallel()
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			holds(t, model.Explore(model.Lifetime{Programs: p, Kills: kills(2), Peek: true, NoSkip: true,
				AnySeq: true}.Model(), limit))
		})
	}
}

func TestLifetimeMutations(t *testing.T) {
	t.Parallel()
	for bug, p := range map[string]model.Programs{
		model.AcquireAfter:    hand,
		model.NoRecheck:       hand,
		model.NoFreeze:        again,
		model.AlwaysUndo:      hand,
		model.NeverUndo:       hand,
		model.NarrowOpseq:     repeat,
		model.NoPutWait:       hand,
		model.ClearBeforeFull: hand,
		model.NoDrop:          hand,
		model.DropAll:         pair,
		model.ClearPassed:     overlap,
		model.WaitInStep5:     cross,
		model.DeafReaper:      cross,
		model.BitsFirst:       hand,
		model.NoReaperFree:    hand,
		model.ImportBlind:     lend,
		model.AnyOrder:        swap,
		model.TakeCounted:     thrice,
		model.ClearTaken:      hand,
		model.ReapTaken:       hand,
		model.DropEarly:       thrice,
	} {
		t.Run(bug, func(t *testing.T) {
			fails(t, model.Explore(model.Lifetime{Programs: p, Kills: 2, Bug: bug}.Model(), limit))
		})
	}
}

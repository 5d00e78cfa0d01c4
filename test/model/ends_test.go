package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

const (
	msg, ring, token, queue = model.Msg, model.Ring, model.Token, model.Queue
	everything              = msg | ring | token | queue
	end                     = ring | token
)

// drained: the last sender closes after its message, the receiver takes it and then sees closed.
var drained = model.Ends{
	Holds: [3]uint8{msg | end, ring, end},
	Programs: [3][]model.EndOp{
		{{Do: model.PutIn, Ring: ring, Blocks: msg}, {Do: model.LetGo, Blocks: everything}},
		{{Do: model.Receive, Ring: ring}, {Do: model.LetGo, Blocks: ring}},
		{{Do: model.LetGo, Blocks: end}},
	},
}

// abandoned: everybody lets go while a message is in the ring.
var abandoned = model.Ends{
	Holds: [3]uint8{msg | end, ring, 0},
	Programs: [3][]model.EndOp{
		{{Do: model.PutIn, Ring: ring, Blocks: msg}, {Do: model.LetGo, Blocks: everything}},
		{{Do: model.LetGo, Blocks: ring}},
	},
}

// travelling: the only sending end goes to another process through a queue.
var travelling = model.Ends{
	Holds: [3]uint8{end | queue, queue, ring},
	Programs: [3][]model.EndOp{
		{{Do: model.PutIn, Ring: queue, Blocks: end}, {Do: model.LetGo, Blocks: everything}},
		{{Do: model.TakeFrom, Ring: queue}, {Do: model.LetGo, Blocks: everything}},
		{{Do: model.Receive, Ring: ring}, {Do: model.LetGo, Blocks: ring}},
	},
}

// stranded: a queue is given up while the only sending end of a ring is in it.
var stranded = model.Ends{
	Holds: [3]uint8{end | queue | msg, queue, ring},
	Programs: [3][]model.EndOp{
		{{Do: model.PutIn, Ring: ring, Blocks: msg}, {Do: model.PutIn, Ring: queue, Blocks: end},
			{Do: model.LetGo, Blocks: everything}},
		{{Do: model.LetGo, Blocks: everything}},
		{{Do: model.Receive, Ring: ring}, {Do: model.LetGo, Blocks: ring}},
	},
}

// shared: a message that a finaliser drops is being put elsewhere.
var shared = model.Ends{
	Holds: [3]uint8{msg | end, msg | queue, ring},
	Programs: [3][]model.EndOp{
		{{Do: model.PutIn, Ring: ring, Blocks: msg}, {Do: model.LetGo, Blocks: everything}},
		{{Do: model.CopyIn, Ring: queue, Blocks: msg}, {Do: model.LetGo, Blocks: everything}},
		{{Do: model.LetGo, Blocks: ring}},
	},
}

// own: the only message of a ring is its own sending end's token.
var own = model.Ends{
	Holds: [3]uint8{end, ring, 0},
	Programs: [3][]model.EndOp{
		{{Do: model.PutIn, Ring: ring, Blocks: token}, {Do: model.LetGo, Blocks: everything}},
		{{Do: model.LetGo, Blocks: ring}},
	},
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]model.Ends{"drained": drained, "abandoned": abandoned,
		"travelling": travelling, "stranded": stranded, "shared": shared, "own": own} {
		t.Run(name, func(t *testing.T) {
			c.Kills = kills(2)
			holds(t, model.Explore(c.Model(), limit))
		})
	}
}

func TestEndsMutations(t *testing.T) {
	t.Parallel()
	for bug, c := range map[string]model.Ends{
		model.NoHold:       abandoned,
		model.NoSecondLook: drained,
		model.NoRefinal:    drained,
		model.NoDrain:      abandoned,
		model.TokenBlind:   abandoned,
		model.NoGone:       own,
		model.GoneEarly:    drained,
		model.FreeStays:    own,
		model.FreeIsGone:   drained,
		model.NoNestedPass: shared,
	} {
		t.Run(bug, func(t *testing.T) {
			c.Kills, c.Bug = 2, bug
			fails(t, model.Explore(c.Model(), limit))
		})
	}
}

package model_test

import (
	"testing"

	"github.com/shoal-mp/shoal/test/model"
)

// rivals: two bind one name at once, while a third looks it up.
var rivals = model.Board{Programs: [3][]model.NameOp{{{Do: model.BindName}}, {{Do: model.BindName, Data: 1}},
	{{Do: model.LookUp}}}}

// taken: the same, and the third unlinks it.
var taken = model.Board{DataFirst: true,
	Programs: [3][]model.NameOp{{{Do: model.BindName}}, {{Do: model.BindName, Data: 1}}, {{Do: model.UnlinkName}}}}

// reused: a name, its block and its slot are used again while somebody looks it up.
var reused = model.Board{Programs: [3][]model.NameOp{
	{{Do: model.BindName}, {Do: model.UnlinkName}},
	{{Do: model.LookUp}},
	{{Do: model.BindName, Data: 1}},
}}

// emptied: the board goes with its last name, while another one is bound.
var emptied = model.Board{Programs: [3][]model.NameOp{
	{{Do: model.BindName}, {Do: model.UnlinkName}, {Do: model.BindName}},
	{{Do: model.BindName, Name: 1, Data: 1}},
}}

func TestBoard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model.Board
		kills int
	}{"rivals": {rivals, 1}, "taken": {taken, 1}, "reused": {reused, 1}, "emptied": {emptied, 2}} {
		t.Run(name, func(t *testing.T) {
			c.Kills = kills(c.kills)
			holds(t, model.Explore(c.Model(), limit))
		})
	}
}

func TestBoardMutations(t *testing.T) {
	t.Parallel()
	for bug, c := range map[string]model.Board{
		model.NoSelf:      rivals,
		model.ScanFirst:   rivals,
		model.PeekBlind:   reused,
		model.NoLap:       reused,
		model.HeaderStore: rivals,
		model.NoBoardGen:  emptied,
		model.BoardUnheld: rivals,
		model.BoardNoSkip: rivals,
	} {
		t.Run(bug, func(t *testing.T) {
			c.Kills, c.Bug = 1, bug
			fails(t, model.Explore(c.Model(), limit))
		})
	}
}

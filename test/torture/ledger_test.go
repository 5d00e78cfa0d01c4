//go:build linux

package main

import "testing"

// A judgement is of what processes wrote, and of what the storm knows.
func TestLedger_Judges(t *testing.T) {
	put := func(pid int, id uint64) []entry { return []entry{{begins, pid, id}, {ends, pid, id}} }
	get := func(pid int, id uint64) []entry { return []entry{{takes, pid, 0}, {gets, pid, id}} }
	for _, c := range []struct {
		name        string
		all         [][]entry
		lost, twice int
	}{
		{name: "nothing"},
		{name: "what was put came", all: [][]entry{put(1, 7), get(2, 7)}},
		{name: "it came before its sender said so", all: [][]entry{{{begins, 1, 7}}, get(2, 7), {{ends, 1, 7}}}},
		{name: "its sender died", all: [][]entry{{{begins, 1, 7}}}},
		{name: "it came from a sender that died", all: [][]entry{{{begins, 1, 7}}, get(2, 7)}},
		{name: "nobody got it", all: [][]entry{put(1, 7), {{takes, 2, 0}, {none, 2, 0}}}, lost: 1},
		{name: "a process died that was getting", all: [][]entry{put(1, 7), {{takes, 2, 0}}}},
		{name: "it takes one with it", all: [][]entry{put(1, 7), put(1, 8), put(1, 9), {{takes, 2, 0}}}, lost: 2},
		{name: "one that got its own takes none", all: [][]entry{put(1, 7), put(1, 8), get(2, 7)}, lost: 1},
		{name: "it came three times", all: [][]entry{put(1, 7), get(2, 7), get(3, 7), get(3, 7)}, twice: 2},
		{name: "nobody put it", all: [][]entry{put(1, 7), get(2, 7), get(2, 8)}, twice: 1},
	} {
		var all []entry
		for _, some := range c.all {
			all = append(all, some...)
		}
		s := new(storm)
		a, doubtful := accounts(all)
		a.judge(s, doubtful)
		if s.seen.Lost != c.lost || s.seen.Twice != c.twice || len(s.violate) == 0 && c.lost+c.twice > 0 {
			t.Errorf("%s: %d lost, %d twice, want %d, %d: %q", c.name, s.seen.Lost, s.seen.Twice, c.lost,
				c.twice, s.violate)
		}
	}
}

func TestLedger_SeesTwoHolders(t *testing.T) {
	const id = 3
	in := func(pid int) entry { return entry{enters, pid, id} }
	out := func(pid int) entry { return entry{leaves, pid, id} }
	kill := func(pid uint64) entry { return entry{kills, 9, pid} }
	for _, c := range []struct {
		name  string
		all   []entry
		most  int
		twice int
	}{
		{name: "one after the other", all: []entry{in(1), out(1), in(2), out(2), in(1)}, most: 1},
		{name: "of two things", all: []entry{in(1), {enters, 2, id + 1}}, most: 1},
		{name: "two at a time", all: []entry{in(1), in(2), out(1)}, most: 1, twice: 1},
		{name: "two permits", all: []entry{in(1), in(2), out(1)}, most: 2},
		{name: "three of two permits", all: []entry{in(1), in(2), in(3)}, most: 2, twice: 1},
		{name: "a holder that was killed", all: []entry{in(1), kill(1), in(2)}, most: 1},
		{name: "what the killed wrote at last", all: []entry{kill(1), in(2), in(1)}, most: 1},
		{name: "two beside one that was killed", all: []entry{in(1), kill(1), in(2), in(3)}, most: 1, twice: 1},
	} {
		s := new(storm)
		alone(s, c.all, id, c.most)
		if s.seen.Twice != c.twice {
			t.Errorf("%s: seen %d times, want %d: %q", c.name, s.seen.Twice, c.twice, s.violate)
		}
	}
}

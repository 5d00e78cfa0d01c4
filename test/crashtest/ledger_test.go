//go:build shoalcrash

package main

import (
	"strings"
	"testing"
)

func TestLedger_Compares(t *testing.T) {
	const id = 3<<24 | 5
	put, got := []byte{saysBegin, saysPut}, []byte{saysGot}
	for _, c := range []struct {
		name             string
		said             []byte // of one message
		read             int    // what the dead were getting
		duplicates, lost int
		says             string
	}{
		{name: "it came", said: append(put, saysGot)},
		{name: "it came before its sender said so", said: []byte{saysBegin, saysGot, saysPut}},
		{name: "its sender died", said: put[:1]},
		{name: "a dead reader had it", said: put, read: 1, lost: 1},
		{name: "nobody had it", said: put, lost: 1, says: "1 messages are lost, and the dead were reading 0"},
		{name: "it came twice", said: append(put, saysGot, saysGot), duplicates: 1, says: "came 2 times"},
		{name: "nobody sent it", said: got, says: "was never sent"},
	} {
		l := newLedger()
		l.read = c.read
		for _, kind := range c.said {
			l.enter(kind, id)
		}
		var violate []string
		duplicates, lost := l.compare(&violate)
		said := strings.Join(violate, "; ")
		wrong := !strings.Contains(said, c.says) || c.says == "" && said != ""
		if duplicates != c.duplicates || lost != c.lost || wrong {
			t.Errorf("%s: %d duplicates, %d lost, %q", c.name, duplicates, lost, said)
		}
	}
}

//go:build shoalcrash

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A victim is the state of a process that runs its part of a scenario until it dies.
type victim struct {
	mouth
	spec
	d     *arena.Domain
	rings []*arena.Ring
	syncs []*arena.Sync
	stop  func() map[string]int
	ends  sync.Mutex // held while it is stopped, and from its end on
}

// victimMain runs the child. arg must be a [spec] in JSON, files 3 and 4 the domain, and 5 and 6
// the pipes. It returns an error if it cannot join the domain, and otherwise ends by killing its
// process.
func victimMain(arg string) error {
	v := &victim{mouth: mouth{os.NewFile(5, "up"), os.NewFile(6, "down")}}
	if err := json.Unmarshal([]byte(arg), &v.spec); err != nil {
		return err
	}
	sc := scenarios[v.Scenario]
	word.HoldReaper(v.Reap || v.Idle)
	if sc.early && !v.Reap {
		v.say("R")
		v.hear()
		v.arm()
	}
	d, err := arena.Attach(os.NewFile(3, "control"), os.NewFile(4, "data"))
	if err != nil {
		return err
	}
	v.d = d
	arena.SetDefault(d)
	if v.Reap {
		err = v.reap()
	} else {
		err = v.play(sc)
	}
	v.ends.Lock()
	if err != nil {
		v.say("E %v", err)
	} else if v.stop != nil {
		hits, _ := json.Marshal(v.stop())
		v.say("H %s", hits)
	}
	v.say("D")
	sys.KillSelf()
	return nil
}

func (v *victim) reap() error {
	v.say("R")
	v.hear()
	v.arm()
	word.HoldReaper(false)
	_, err := v.d.Reap()
	return err
}

func (v *victim) play(sc *scenario) error {
	if sc.prep != nil {
		if err := sc.prep(v); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	if !sc.early {
		v.say("R")
		v.hear()
		v.arm()
	}
	if sc.act == nil {
		return nil
	}
	return sc.act(v)
}

func (v *victim) arm() {
	if v.Stop != "" && !v.Reap {
		word.ArmCrash(v.Stop, "after", 1, func() { v.say("S"); v.hear() })
	}
	switch {
	case v.Record:
		v.stop = word.RecordWrites()
	case v.Halt:
		word.ArmCrash(v.Site, v.Phase, v.Nth, v.halt)
	case v.Pause:
		word.ArmCrash(v.Site, v.Phase, v.Nth, func() { v.say("K"); v.hear() })
	case v.Site != "":
		word.ArmCrash(v.Site, v.Phase, v.Nth, nil)
	}
}

// halt stops the whole process and returns when it is continued. No other goroutine may end the
// process in the meantime.
func (v *victim) halt() {
	v.ends.Lock()
	defer v.ends.Unlock()
	v.say("Z")
	if err := sys.StopSelf(); err != nil {
		v.say("E stop: %v", err)
	}
}

// open imports and opens the rings with the handles in the first n arguments. The victim keeps
// them open until its death.
func (v *victim) open(n int) error {
	for _, a := range v.Args[:n] {
		if err := v.d.Import(arena.Handle(a)); err != nil {
			return err
		}
		r, err := v.d.OpenRing(arena.Handle(a))
		if err != nil {
			return err
		}
		v.rings = append(v.rings, r)
	}
	return nil
}

// put puts message id with n new blocks of size bytes and a body of about long bytes, and
// reports it before and after. If move is true, the message takes over the blocks; otherwise put
// releases them.
func (v *victim) put(r *arena.Ring, id uint64, n, size, long int, move bool) error {
	hs, err := blocks(v.d, id, n, size)
	if err != nil {
		return err
	}
	v.say("B %d", id)
	if err := r.Put(context.Background(), body(id, n, long), hs, move); err != nil {
		return err
	}
	v.say("P %d", id)
	if !move {
		return release(v.d, hs...)
	}
	return nil
}

// get waits for a message of r, verifies and reports it, and returns its ID, or 0 if the message
// carries only a block. The caller must discard it, unless the get itself failed.
func (v *victim) get(r *arena.Ring, m *arena.Message) (uint64, error) {
	if err := r.Get(context.Background(), m); err != nil {
		return 0, err
	}
	if len(m.Body) == 0 && len(m.Blocks) > 0 {
		return 0, nil // carries only a block
	}
	id, err := verifyMessage(v.d, m)
	if err == nil {
		v.say("G %d", id)
	}
	return id, err
}

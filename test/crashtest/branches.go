//go:build shoalcrash

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
)

// reaperBranches are the branches of the reaper that DisableBranch accepts. The audit must fail if
// any one of them is disabled.
var reaperBranches = []string{
	"budget add", "budget sub", "writing", "published", "span written", "span read", "commit done",
	"commit undo", "shrink",
	"put published", "put undone",
	"free", "reader", "stray get", "owner bits", "try free", "waiter bits", "spinner bits", "release dead",
	"lost hints", "relief", "ring all",
	"cell waiter bits", "grant", "deserted", "leased",
}

// branches disables one branch of the reaper after another and repeats deaths of first until a
// violation is detected. It returns the number of branches that were detected, and an error that
// names the others.
func (p *plan) branches(first []trial) (caught int, err error) {
	names := make(chan string)
	var mu sync.Mutex
	var blind []string
	var wg sync.WaitGroup
	for range benches {
		wg.Go(func() {
			for name := range names {
				t, ok := p.seen(name, first)
				mu.Lock()
				if ok {
					caught++
					fmt.Fprintf(os.Stderr, "without %q: %s at %s %s\n", name, t.Scenario, t.Site, t.Phase)
				} else {
					blind = append(blind, name)
				}
				mu.Unlock()
			}
		})
	}
	for _, name := range reaperBranches {
		names <- name
	}
	close(names)
	wg.Wait()
	if len(blind) > 0 {
		err = fmt.Errorf("nobody misses these branches of the reaper: %s", strings.Join(blind, ", "))
	}
	return caught, err
}

func (p *plan) seen(name string, first []trial) (trial, bool) {
	c := &client{arg: p.arg, disable: name}
	defer c.close()
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(first)) { // in random order
		t := first[i]
		t.Auto = false
		if t.Nth > 2 || scenarios[t.Scenario].most == 1 {
			continue
		}
		if v := c.try(t); len(v.Wrong) > 0 {
			return t, true
		}
	}
	return trial{}, false
}

//go:build linux

// Histories checks that queues, values and locks are linearizable: processes work on one object at
// the same time and record the call and the return of each operation, some of them are killed, and
// Porcupine searches an order of the operations that a sequential model permits.
//
// It prints its counts as one line of JSON, with the names that make torture adds up. A history
// without such an order is written to the directory -out as a page that shows it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/shoal-mp/shoal"
)

func main() { shoal.Main(runSessions) }

func runSessions(ctx context.Context) error {
	only := flag.String("object", "", "check histories of this kind of object only: "+strings.Join(kindNames(), ", "))
	sessions := flag.Int("sessions", 4, "groups of processes to start for each kind of object")
	processes := flag.Int("processes", 4, "processes in a group")
	kills := flag.Int("kills", 1, "processes of a group that are killed in every second session")
	seed := flag.Uint64("seed", rand.Uint64N(1<<40), "of the random choices")
	out := flag.String("out", ".", "the directory for pages of histories that no order explains")
	limit := flag.Duration("limit", 10*time.Second, "how long the search for one history's order may take")
	flag.Parse()

	if *only != "" && !slices.Contains(kindNames(), *only) {
		return fmt.Errorf("-object %s: want one of %s", *only, strings.Join(kindNames(), ", "))
	}
	var total counts
	var failed error
	for i, k := range kinds {
		if *only != "" && k.name != *only {
			continue
		}
		for n := range *sessions {
			s := session{kind: k, processes: *processes, seed: *seed + uint64(i*1000+n), out: *out, limit: *limit}
			if n%2 == 1 {
				s.kills = *kills
			}
			c, err := s.run(ctx)
			total.add(c)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s, seed %d: %w", k.name, s.seed, err))
			}
		}
	}
	line, err := json.Marshal(total)
	fmt.Printf("%s\n", line)
	// On a busy machine the processes get less done before their time is over.
	if total.Histories == 0 || total.Operations < 2*total.Histories {
		failed = errors.Join(failed,
			fmt.Errorf("%d histories with %d operations: processes did nothing", total.Histories, total.Operations))
	}
	return errors.Join(failed, err)
}

// counts are the totals of a run. Lost is the number of histories that no order explains; make
// torture requires that it is 0.
type counts struct {
	Kills      int `json:"kills"`
	Histories  int `json:"histories"`
	Operations int `json:"operations"`
	Overlaps   int `json:"overlaps"` // operations that began while one of another process went on
	Pending    int `json:"pending"`  // operations of killed processes that had not returned
	Undecided  int `json:"undecided"`
	Lost       int `json:"lost_unexplained"`
}

func (c *counts) add(o counts) {
	c.Kills += o.Kills
	c.Histories += o.Histories
	c.Operations += o.Operations
	c.Overlaps += o.Overlaps
	c.Pending += o.Pending
	c.Undecided += o.Undecided
	c.Lost += o.Lost
}

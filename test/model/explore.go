package model

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"
)

// A Model is a transition system over states of type S, for [Explore]. All functions must be
// set. S should not contain padding or pointers, because states are hashed and copied often.
type Model[S comparable] struct {
	Init   S
	Steps  func(s S, emit func(S)) // emits every successor by one step of a participant
	Events func(s S, emit func(S)) // the same for optional events such as a kill or a join
	Check  func(s *S) error        // invariant of every state
	Done   func(s *S) error        // invariant of states without a further step
}

// A Result is the outcome of an exploration.
type Result struct {
	States   int           // distinct states
	Terminal int           // states in which no participant has a step left
	Complete bool          // false if the limit was reached
	Elapsed  time.Duration // wall time
	Err      error         // first violation, nearest to the initial state, or nil
	Trace    []string      // steps that lead to it
}

// String returns the counts, followed by the violation with its steps if there is one.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d states, %d terminal, %v", r.States, r.Terminal, r.Elapsed.Round(time.Millisecond))
	if !r.Complete {
		b.WriteString(", not complete")
	}
	if r.Err != nil {
		fmt.Fprintf(&b, "\n%v, after %d steps:\n", r.Err, len(r.Trace))
		for i, step := range r.Trace {
			fmt.Fprintf(&b, "%3d  %s\n", i+1, step)
		}
	}
	return b.String()
}

// Explore visits the states that m can reach in breadth-first order, until it finds a violation
// or has seen limit states. The result says which of these ended the exploration. States are
// identified by 64-bit fingerprints: for 50 million states, the probability of a collision is
// below 1 in 10,000.
func Explore[S comparable](m Model[S], limit int) Result {
	e := explorer[S]{Model: m, seed: maphash.MakeSeed(), seen: newFingerprints(1 << 12)}
	start := time.Now()
	r := e.run(limit)
	r.States, r.Elapsed = e.seen.n, time.Since(start)
	return r
}

type explorer[S comparable] struct {
	Model[S]
	seed      maphash.Seed
	seen      *fingerprints
	now, next []S
}

func (e *explorer[S]) run(limit int) (r Result) {
	e.seen.add(e.hash(&e.Init), 0)
	e.next = append(e.next, e.Init)
	for len(e.next) > 0 {
		e.now, e.next = e.next, e.now[:0]
		for i := range e.now {
			s := &e.now[i]
			if err := e.visit(s, &r); err != nil {
				r.Err, r.Trace = err, e.trace(*s)
				return r
			}
			if e.seen.n >= limit {
				return r
			}
		}
	}
	r.Complete = true
	return r
}

// visit checks s and queues its unseen successors. It returns the violation of an invariant of
// s, or nil, and counts s in r if s is terminal.
func (e *explorer[S]) visit(s *S, r *Result) error {
	if err := e.Check(s); err != nil {
		return err
	}
	moved := false
	parent := e.hash(s)
	queue := func(to S) {
		if e.seen.add(e.hash(&to), parent) {
			e.next = append(e.next, to)
		}
	}
	e.Steps(*s, func(to S) {
		moved = moved || to != *s
		queue(to)
	})
	e.Events(*s, queue)
	if moved {
		return nil
	}
	r.Terminal++
	return e.Done(s)
}

func (e *explorer[S]) hash(s *S) uint64 {
	return max(1, maphash.Comparable(e.seed, *s)) // 0 marks an empty entry
}

// trace returns a description of each step from the initial state to s. It follows the recorded
// parents from s back, and then repeats the steps forward.
func (e *explorer[S]) trace(s S) []string {
	var path []uint64
	for h := e.hash(&s); h != 0; h = e.seen.parent(h) {
		path = append(path, h)
	}
	var steps []string
	at := e.Init
	for i := len(path) - 2; i >= 0; i-- {
		to := e.successor(at, path[i])
		steps = append(steps, Diff(at, to))
		at = to
	}
	return steps
}

func (e *explorer[S]) successor(s S, hash uint64) (found S) {
	match := func(to S) {
		if e.hash(&to) == hash {
			found = to
		}
	}
	e.Steps(s, match)
	e.Events(s, match)
	return found
}

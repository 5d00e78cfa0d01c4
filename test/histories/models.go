//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// An opName names an operation of an object, such as opPut.
type opName uint8

const (
	opPut opName = iota // of a queue
	opGet
	opStore // of a Latest
	opLoad
	opSet // of a dict
	opLookup
	opDelete
	opPop
	opSwap
	opLock // of a mutex
	opUnlock
	opMark
	opAcquire // of a semaphore
	opRelease
	opPermits
	opDie // the process is killed
)

var opNames = [...]string{"put", "get", "store", "load", "set", "lookup", "delete", "pop", "swap",
	"lock", "unlock", "mark consistent", "acquire", "release", "permits", "die"}

func (n opName) String() string { return opNames[n] }

// model returns a model with states of type S, for the checker. step must return the state after
// an operation, and true if the model permits the operation's result in state s. It must permit
// the outcome unknown in every state that lets the operation end.
func model[S comparable](initial S, step func(s S, in op, out result) (bool, S)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return initial },
		Step: func(s, in, out any) (bool, any) { return step(s.(S), in.(op), out.(result)) },
		DescribeOperation: func(in, out any) string {
			o, r := in.(op), out.(result)
			return fmt.Sprintf("%v(key %d, value %d, old %d) -> %v, value %d, version %d",
				o.Name, o.Key, o.Value, o.Old,
				[...]string{"unknown", "done", "refused", "expired", "owner died"}[r.Outcome], r.Value, r.Version)
		},
		DescribeState: func(s any) string { return fmt.Sprintf("%v", s) },
	}
}

// queueModel returns the model of a queue of the given capacity, at most 8. A put that fails at
// its deadline must have found the queue full at some time, and a get must have found it empty.
func queueModel(capacity int) porcupine.Model {
	type state struct {
		n      int
		values [8]uint64
	}
	return model(state{}, func(s state, in op, out result) (bool, state) {
		switch in.Name {
		case opPut:
			if s.n == capacity {
				return out.Outcome != done, s
			}
			if out.Outcome.failed() {
				return false, s
			}
			s.values[s.n] = in.Value
			s.n++
			return true, s
		case opGet:
			if s.n == 0 {
				return out.Outcome != done, s
			}
			if out.Outcome.failed() || out.Outcome == done && out.Value != s.values[0] {
				return false, s
			}
			copy(s.values[:], s.values[1:])
			s.n--
			s.values[s.n] = 0
			return true, s
		}
		return in.Name == opDie, s
	})
}

// latestModel returns the model of a Latest that begins with the value 0 and version 1.
func latestModel() porcupine.Model {
	type state struct{ value, version uint64 }
	return model(state{0, 1}, func(s state, in op, out result) (bool, state) {
		switch in.Name {
		case opStore:
			next := state{in.Value, s.version + 1}
			return out.Outcome != refused && (out.Outcome == unknown || out.Version == next.version), next
		case opLoad:
			return out.Outcome == unknown || out == result{done, s.value, s.version}, s
		}
		return in.Name == opDie, s
	})
}

// dictModel returns the model of one key of a dict. Values are never 0, which stands for no
// value.
func dictModel() porcupine.Model {
	m := model(uint64(0), func(s uint64, in op, out result) (bool, uint64) {
		known := out.Outcome != unknown
		found := out.Outcome == done
		switch in.Name {
		case opSet:
			return !known || found, in.Value
		case opLookup:
			return !known || found == (s != 0) && (!found || out.Value == s), s
		case opDelete:
			return !known || found == (s != 0), 0
		case opPop:
			return !known || found == (s != 0) && (!found || out.Value == s), 0
		case opSwap:
			if known && found != (s == in.Old && s != 0) {
				return false, s
			}
			if s == in.Old && s != 0 {
				return true, in.Value
			}
			return true, s
		}
		return in.Name == opDie, s
	})
	m.Partition = func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[uint8][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(op).Key
			byKey[key] = append(byKey[key], o)
		}
		var all [][]porcupine.Operation
		for _, h := range byKey {
			all = append(all, h)
		}
		slices.SortFunc(all, func(a, b []porcupine.Operation) int {
			return cmp.Compare(a[0].Input.(op).Key, b[0].Input.(op).Key)
		})
		return all
	}
	return m
}

// mutexModel returns the model of a robust mutex: the process that locks it after its owner has
// died is told, until one marks it consistent.
func mutexModel() porcupine.Model {
	type state struct {
		owner    uint8 // client + 1, or 0
		orphaned bool
	}
	return model(state{}, func(s state, in op, out result) (bool, state) {
		me := in.Client + 1
		switch in.Name {
		case opLock:
			if s.owner != 0 {
				return out.Outcome.failed() || out.Outcome == unknown, s
			}
			if out.Outcome.failed() || out.Outcome != unknown && (out.Outcome == ownerDied) != s.orphaned {
				return false, s
			}
			return true, state{me, s.orphaned}
		case opUnlock:
			if s.owner != me { // the operation of a dead process, after its death
				return out.Outcome == unknown, s
			}
			return !out.Outcome.failed(), state{0, s.orphaned}
		case opMark:
			if s.owner != me {
				return out.Outcome == unknown, s
			}
			return s.orphaned && !out.Outcome.failed(), state{me, false}
		case opDie:
			if s.owner == me {
				return true, state{0, true}
			}
			return true, s
		}
		return false, s
	})
}

// semaphoreModel returns the model of a semaphore. The permits of a process that dies return. An
// acquire may also fail at its deadline because the operation of a process that does not run is
// in progress.
func semaphoreModel(permits int) porcupine.Model {
	type state struct {
		free int
		held [8]int
	}
	return model(state{free: permits}, func(s state, in op, out result) (bool, state) {
		switch in.Name {
		case opAcquire:
			if s.free == 0 || out.Outcome == expired {
				return out.Outcome.failed() || out.Outcome == unknown, s
			}
			if out.Outcome == refused {
				return false, s
			}
			s.free--
			s.held[in.Client]++
			return true, s
		case opRelease:
			if s.held[in.Client] == 0 { // the operation of a dead process, after its death
				return out.Outcome == unknown, s
			}
			s.free++
			s.held[in.Client]--
			return true, s
		case opPermits:
			return out.Outcome == unknown || out.Value == uint64(s.free), s
		case opDie:
			s.free += s.held[in.Client]
			s.held[in.Client] = 0
			return true, s
		}
		return false, s
	})
}

package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// rules are all rules. A rule must have evidence for each finding, and gives it a weight: if two
// findings have the same culprit or one explains the other, the report begins with the heavier one.
var rules = []func(*job) []Finding{
	findDeadTracker, findDeadWorkers, findStopped, findZombies, findOrphans,
	findDeadHolders, findLockCycles, findPipeDeadlocks, findLocalDeadlocks, findDeadPinThread,
	findReapedWorkers, findUndrained, findSlowConsumers, findLastWriters, findLostTasks, findUnfinishedTasks,
	findLostSignals, findFailingPools,
	findRanks,
	findDescriptors, findFullShm, findThrottled, findOversubscribed,
	findBusyWorker, findSlowDevice, findSilentLoaders, findStuckLoaders,
}

// Weights of findings, in the order of their importance.
const (
	weightSlow = iota + 1
	weightOversubscribed
	weightZombie
	weightConsumer
	weightStuck
	weightTasks
	weightThrottled
	weightRank
	weightOrphan
	weightTracker
	weightKilled
	weightDescriptors
	weightShm
	weightStopped
	weightPin
	weightDeadlock
	weightUndrained
	weightHolder
	weightOOM
)

// applyRules returns the findings of all rules, the most important first. Of several findings with
// one culprit it keeps the most important one.
func (j *job) applyRules() []Finding {
	all := []Finding{}
	for _, rule := range rules {
		all = append(all, rule(j)...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(b.weight, a.weight) })
	seen := make(map[int]bool)
	return slices.DeleteFunc(all, func(f Finding) bool {
		if f.Rule == "waits-for-ended" && j.isExplained(f.PID, all) || f.Rule == "never-signalled" && len(all) > 1 &&
			all[0].Rule != f.Rule {
			return true // the other finding may be the reason
		}
		again := seen[f.PID]
		seen[f.PID] = true
		return again
	})
}

// isExplained reports whether another finding says more about the process pid of a finding
// waits-for-ended, so that this one is redundant: a child of it was killed, or it is a rank that
// the others wait for.
func (j *job) isExplained(pid int, all []Finding) bool {
	return slices.ContainsFunc(all, func(f Finding) bool {
		switch f.Rule {
		case "worker-killed", "worker-failed", "worker-out-of-memory", "lock-held-by-dead":
			parent, known := j.parent[f.PID]
			return parent == pid || !known // it was reaped
		case "rank-missing":
			return f.PID == pid
		case "waits-for-ended": // the child is named
			return j.parent[f.PID] == pid && f.PID != pid
		}
		return false
	})
}

func itoa(n int) string { return strconv.Itoa(n) }

func evidence(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// appendPlace adds the position of a process in its Python code to the evidence, if it is known.
func (j *job) appendPlace(list []string, pid int) []string {
	if place := j.placeOf(pid); place != "" {
		return append(list, evidence("%s is in %s", j.label(pid), place))
	}
	return list
}

func countProcesses(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

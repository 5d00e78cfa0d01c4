package shoal

import (
	"strconv"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Threads returns how many threads this process may keep busy: its share of what its starter had, and in the first process
// the number of CPUs that affinity and the control group's quota allow. In a worker GOMAXPROCS is set to it.
func Threads() int {
	if self != nil {
		return self.threads
	}
	return machineThreads()
}

var machineThreads = sync.OnceValue(sys.CPUs)

// share divides a budget among workers. Nobody gets less than one thread.
func share(total, workers int) int { return max(1, total/max(1, workers)) }

// budgetEnv tells Go and the usual numeric libraries, which read these at their start.
func budgetEnv(threads int) []string {
	n := strconv.Itoa(threads)
	return []string{
		"GOMAXPROCS=" + n,
		"OMP_NUM_THREADS=" + n,
		"MKL_NUM_THREADS=" + n,
		"OPENBLAS_NUM_THREADS=" + n,
	}
}

// mergeEnv joins lists of KEY=VALUE; of equal keys the last stands.
func mergeEnv(lists ...[]string) []string {
	var env []string
	at := make(map[string]int)
	for _, list := range lists {
		for _, kv := range list {
			key, _, _ := strings.Cut(kv, "=")
			if i, ok := at[key]; ok {
				env[i] = kv
				continue
			}
			at[key] = len(env)
			env = append(env, kv)
		}
	}
	return env
}

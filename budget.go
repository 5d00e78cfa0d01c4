package shoal

import (
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Threads returns how many threads this process may keep busy. In a worker this is its share of
// what its starter had. In the first process it is the number of CPUs that affinity and the control
// group's quota allow. In a worker GOMAXPROCS is set to the share. SetThreads changes the number.
func Threads() int {
	if n := chosenThreads.Load(); n > 0 {
		return int(n)
	}
	return granted()
}

// granted is the number of threads that this process has been given.
func granted() int {
	if self != nil {
		return self.threads
	}
	return machineThreads()
}

// SetThreads sets how many threads this process may keep busy, at least 1: torch.set_num_threads.
// It sets GOMAXPROCS, which also bounds the kernels of package tensor. Processes that are started
// later share the new number. If the number is above what this process was given, all processes get
// slower, and SetThreads logs a warning.
func SetThreads(n int) {
	if n < 1 {
		panic(fmt.Sprintf("shoal: SetThreads(%d): at least 1 thread is needed", n))
	}
	chosenThreads.Store(int64(n))
	runtime.GOMAXPROCS(n)
	if share := granted(); n > share {
		slog.Warn("shoal: SetThreads exceeds the share of this process", "threads", n, "share", share, "cpus",
			machineThreads())
	}
}

var chosenThreads atomic.Int64 // 0: the program has not chosen

var machineThreads = sync.OnceValue(sys.CPUs)

// share divides a budget among workers. Each worker gets at least one thread.
func share(total, workers int) int { return max(1, total/max(1, workers)) }

// budgetEnv tells the budget to Go and to the usual numeric libraries, which read these variables
// at their start.
func budgetEnv(threads int) []string {
	n := strconv.Itoa(threads)
	return []string{
		"GOMAXPROCS=" + n,
		"OMP_NUM_THREADS=" + n,
		"MKL_NUM_THREADS=" + n,
		"OPENBLAS_NUM_THREADS=" + n,
	}
}

// mergeEnv joins lists of KEY=VALUE. Of equal keys the last one counts.
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

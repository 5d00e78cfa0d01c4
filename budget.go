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

// Threads returns how many threads this process may keep busy: its share of what its starter had,
// and in the first process the number of CPUs that affinity and the control group's quota allow. In
// a worker GOMAXPROCS is set to it. SetThreads changes it.
func Threads() int {
	if n := chosenThreads.Load(); n > 0 {
		return int(n)
	}
	return granted()
}

// granted is what this process has been given.
func granted() int {
	if self != nil {
		return self.threads
	}
	return machineThreads()
}

// SetThreads sets how many threads this process may keep busy, at least 1: torch.set_num_threads.
// It sets GOMAXPROCS, which also bounds the kernels of package tensor; processes that are started
// later share the new number. With more threads than this process was given all processes get
// slower: then it logs a warning.
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

var chosenThreads atomic.Int64 // 0: nobody has chosen

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

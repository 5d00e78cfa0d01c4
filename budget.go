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

// Threads returns the number of threads that this process should keep busy. In a worker, it is the
// worker's share of its parent's threads, and GOMAXPROCS is set to it. In the first process, it is
// the number of CPUs that the affinity mask and the control group's quota allow. [SetThreads]
// changes it.
func Threads() int {
	if n := chosenThreads.Load(); n > 0 {
		return int(n)
	}
	return threadBudget()
}

// threadBudget returns the number of threads that this process was given, regardless of
// [SetThreads]: by its parent in a worker, and otherwise by the affinity mask and the control
// group's quota.
func threadBudget() int {
	if self != nil {
		return self.threads
	}
	return machineThreads()
}

// SetThreads sets the number of threads that this process may keep busy, like
// torch.set_num_threads. n must be at least 1; SetThreads panics otherwise. It sets GOMAXPROCS,
// which also limits the kernels of package tensor. Processes that are started later share the new
// number. If n exceeds the number that this process was given, all processes get slower, and
// SetThreads logs a warning.
func SetThreads(n int) {
	if n < 1 {
		panic(fmt.Sprintf("shoal: SetThreads(%d): want at least 1 thread", n))
	}
	chosenThreads.Store(int64(n))
	runtime.GOMAXPROCS(n)
	if share := threadBudget(); n > share {
		slog.Warn("shoal: SetThreads exceeds the share of this process", "threads", n, "share", share, "cpus",
			machineThreads())
	}
}

var chosenThreads atomic.Int64 // 0: not set

var machineThreads = sync.OnceValue(sys.CPUs)

// shareThreads returns the number of threads for each of a number of workers that share a budget
// of total threads. It is at least 1.
func shareThreads(total, workers int) int { return max(1, total/max(1, workers)) }

// budgetEnv returns the environment variables that limit the threads of Go and of common numeric
// libraries, which read them at start.
func budgetEnv(threads int) []string {
	n := strconv.Itoa(threads)
	return []string{
		"GOMAXPROCS=" + n,
		"OMP_NUM_THREADS=" + n,
		"MKL_NUM_THREADS=" + n,
		"OPENBLAS_NUM_THREADS=" + n,
	}
}

// mergeEnv merges lists of KEY=VALUE. The last value of a key wins. The order is the order of
// the first entries of the keys.
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

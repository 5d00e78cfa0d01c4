package shoal

import (
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// workerEnvKey is removed from the environment before any user code runs, so that programs started
// by a worker are not taken for workers.
const workerEnvKey = sys.WorkerKey

// workerEnvVersion must change whenever the variable, the descriptors or the frames change.
const workerEnvVersion = 5

// A workerEnv contains the parameters that a worker needs before it has read its job.
type workerEnv struct {
	lifelines   int // number of descriptors from fdLifelines on
	threads     int
	orphanGrace time.Duration
	warm        bool // join the domain, report it, and wait for the job
}

// Descriptors of a new worker. 0 is /dev/null, 1 and 2 are its output.
const (
	fdControl       = 3 // stream socket for frames in both directions
	fdCrash         = 4 // memory file for the crash output of the runtime
	fdDomainControl = 5
	fdDomainData    = 6
	fdLifelines     = 7 // pipes, the root's first; end of file means that the ancestor has died
)

func (m workerEnv) String() string {
	return fmt.Sprintf("%s=%d %d %d %d %t", workerEnvKey, workerEnvVersion, m.lifelines, m.threads,
		int64(m.orphanGrace), m.warm)
}

// A versionError reports that the parent has another protocol version.
type versionError int

func (v versionError) Error() string {
	return fmt.Sprintf("the worker's program has worker protocol version %d, the program that started it has "+
		"version %d: "+
		"build both from one version of Shoal", workerEnvVersion, int(v))
}

// parseMark parses value, the value of the environment variable [workerEnvKey]. It returns a
// [versionError] if the parent has another version. The version must come first in all versions;
// the rest may differ.
func parseMark(value string) (m workerEnv, err error) {
	var version int
	if n, _ := fmt.Sscan(value, &version); n == 1 && version != workerEnvVersion && version > 0 {
		return workerEnv{}, versionError(version)
	}
	n, err := fmt.Sscanf(value, "%d %d %d %d %t", &version, &m.lifelines, &m.threads, (*int64)(&m.orphanGrace), &m.warm)
	if err != nil || n != 5 || version != workerEnvVersion || m.lifelines < 1 || m.threads < 1 || m.orphanGrace < 0 {
		return workerEnv{}, fmt.Errorf("shoal: %s=%q was not set by this program: unset it", workerEnvKey, value)
	}
	return m, nil
}

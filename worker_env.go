package shoal

import (
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// workerEnvKey is removed before any code of the user's runs, so that programs which a worker
// starts are not mistaken for workers.
const workerEnvKey = sys.WorkerKey

// workerEnvVersion changes whenever the meaning of the variable, the descriptors or the frames
// does.
const workerEnvVersion = 5

// A workerEnv is what a worker must know before it has read its job.
type workerEnv struct {
	lifelines   int // the number of descriptors from fdLifelines on
	threads     int
	orphanGrace time.Duration
	warm        bool // it waits for its job when it has joined the domain, and says so
}

// The descriptors of a new worker. 0 is /dev/null, 1 and 2 are its output.
const (
	fdControl       = 3 // stream socket: frames both ways
	fdCrash         = 4 // memory file: what the runtime writes when it gives up
	fdDomainControl = 5
	fdDomainData    = 6
	fdLifelines     = 7 // pipes, the root's first; end of file means that the ancestor is dead
)

func (m workerEnv) String() string {
	return fmt.Sprintf("%s=%d %d %d %d %t", workerEnvKey, workerEnvVersion, m.lifelines, m.threads, int64(m.orphanGrace), m.warm)
}

// A versionError says that the program that started this one is of another version.
type versionError int

func (v versionError) Error() string {
	return fmt.Sprintf("the worker's program speaks version %d of the worker protocol, and the program that started it version %d: "+
		"build both from one version of Shoal", workerEnvVersion, int(v))
}

// parseMark reads the value of the variable. The version comes first in every version, and the rest
// may differ.
func parseMark(value string) (m workerEnv, err error) {
	var version int
	if n, _ := fmt.Sscan(value, &version); n == 1 && version != workerEnvVersion && version > 0 {
		return workerEnv{}, versionError(version)
	}
	n, err := fmt.Sscanf(value, "%d %d %d %d %t", &version, &m.lifelines, &m.threads, (*int64)(&m.orphanGrace), &m.warm)
	if err != nil || n != 5 || version != workerEnvVersion || m.lifelines < 1 || m.threads < 1 || m.orphanGrace < 0 {
		return workerEnv{}, fmt.Errorf("shoal: %s=%q was not set by this program; unset it", workerEnvKey, value)
	}
	return m, nil
}

package shoal

import (
	"fmt"
	"os"
	"time"
)

// A launch contains the parameters for starting a process that do not depend on its job.
type launch struct {
	executable, workDir string
	env                 []string
	threads             int
	orphanGrace         time.Duration

	title string                                 // name in ps
	warm  bool                                   // whether the process must wait for its job
	files func() (out, errs *os.File, err error) // creates output files; nil for pipes
}

func launchOf(o Options) launch {
	return launch{executable: o.Executable, workDir: o.WorkDir, env: o.Env, threads: o.workerThreads(),
		orphanGrace: o.OrphanGrace}
}

// launchKey returns a key that is equal for two launches if a waiting process of one can do a
// job of the other. The number of threads is not part of it: it is sent with the job.
func (b launch) launchKey() string {
	return fmt.Sprintf("%q %q %q %d", b.executable, b.workDir, b.env, b.orphanGrace)
}

const titlePrefix = "shoal: "

// processTitle returns the name of a worker in ps.
func processTitle(name string, rank int) string {
	return fmt.Sprintf("%s%s %d", titlePrefix, name, rank)
}

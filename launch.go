package shoal

import (
	"fmt"
	"os"
	"time"
)

// A launch has the facts that are needed to start a process, before the process has a job.
type launch struct {
	executable, workDir string
	env                 []string
	threads             int
	orphanGrace         time.Duration

	title string                                 // the name in ps
	warm  bool                                   // the process is to wait for its job
	files func() (out, errs *os.File, err error) // makes the files for the output; nil for pipes
}

func launchOf(o Options) launch {
	return launch{executable: o.Executable, workDir: o.WorkDir, env: o.Env, threads: o.threads(),
		orphanGrace: o.OrphanGrace}
}

// kind is equal for launches of which one can stand in for the other. The number of threads comes
// with the job.
func (b launch) kind() string {
	return fmt.Sprintf("%q %q %q %d", b.executable, b.workDir, b.env, b.orphanGrace)
}

const titlePrefix = "shoal: "

// title is the name of a worker in ps.
func title(name string, rank int) string { return fmt.Sprintf("%s%s %d", titlePrefix, name, rank) }

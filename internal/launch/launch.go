package launch

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A Launch describes the place of a process in a job.
type Launch struct {
	By                   string // name of the launcher, for messages
	Rank, Size           int
	LocalRank, LocalSize int    // among the ranks on this machine
	Job                  string // unique id of the job on this machine
	MPI                  bool   // an MPI library can join the job
}

// JobKey is the environment variable that contains the job id of shoal run.
const JobKey = "SHOAL_JOB"

// ErrVariables is wrapped by the error of Find if the variables are incomplete or contradict each
// other.
var ErrVariables = errors.New("the environment does not define the rank of this process")

// A starter describes the variables that a launcher sets for each process. A name is empty if the
// launcher does not set that variable.
type starter struct {
	by                          string
	needs                       string // must be set too, to identify the launcher
	rank, size, local, localAll string
	job                         []string // identify the job together; if empty, the parent pid does
	mpi                         bool
}

// starters are tried in this order, the innermost launcher first: mpirun may run within a Slurm
// job, and shoal run within either.
var starters = []starter{
	{by: "shoal run", needs: JobKey, rank: "RANK", size: "WORLD_SIZE", local: "LOCAL_RANK",
		localAll: "LOCAL_WORLD_SIZE",
		job:      []string{JobKey}},
	{by: "mpirun of Open MPI", rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE",
		local: "OMPI_COMM_WORLD_LOCAL_RANK", localAll: "OMPI_COMM_WORLD_LOCAL_SIZE",
		job: []string{"PMIX_NAMESPACE"}, mpi: true},
	{by: "mpiexec of MPICH", needs: "MPI_LOCALRANKID", rank: "PMI_RANK", size: "PMI_SIZE",
		local: "MPI_LOCALRANKID", localAll: "MPI_LOCALNRANKS", mpi: true},
	{by: "torchrun", rank: "RANK", size: "WORLD_SIZE", local: "LOCAL_RANK", localAll: "LOCAL_WORLD_SIZE",
		job: []string{"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
	srunStarter("PMIX_RANK", "srun --mpi=pmix of Slurm", true),
	srunStarter("PMI_RANK", "srun --mpi=pmi2 of Slurm", true),
	srunStarter("SLURM_STEP_ID", "srun of Slurm", false), // an sbatch script also has SLURM_PROCID=0, but no step
	{by: "a launcher with PMI", rank: "PMI_RANK", size: "PMI_SIZE", mpi: true},
	{by: "an Indexed Job of Kubernetes", rank: "JOB_COMPLETION_INDEX", size: "WORLD_SIZE"},
}

// srunStarter returns the variables that Slurm sets for the tasks of a step. needs is the variable
// that tells this way of starting them from others, and by is its name in messages. mpi reports
// whether an MPI library can join the tasks, which requires that srun supports its PMI version;
// otherwise the library ends the process.
func srunStarter(needs, by string, mpi bool) starter {
	return starter{by: by, needs: needs, rank: "SLURM_PROCID", size: "SLURM_STEP_NUM_TASKS", local: "SLURM_LOCALID",
		localAll: "SLURM_STEP_TASKS_PER_NODE", job: []string{"SLURM_JOB_ID", "SLURM_STEP_ID"}, mpi: mpi}
}

// Find determines the launch from environment variables, which it reads with getenv, usually
// os.Getenv. A process without a launcher is the only rank of its job. The error wraps
// [ErrVariables].
func Find(getenv func(string) string) (Launch, error) {
	for _, s := range starters {
		if getenv(s.rank) != "" && (s.needs == "" || getenv(s.needs) != "") {
			return s.readLaunch(getenv)
		}
	}
	return Launch{By: "no known launcher", Size: 1, LocalSize: 1}, nil
}

func (s starter) readLaunch(getenv func(string) string) (Launch, error) {
	l := Launch{By: s.by, MPI: s.mpi}
	number := func(name string) (int, error) {
		n, err := strconv.Atoi(getenv(name))
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%w: %s has set %s=%q, but %s=%q is not a number", ErrVariables, s.by, s.rank,
				getenv(s.rank), name, getenv(name))
		}
		return n, nil
	}
	var err error
	if l.Rank, err = number(s.rank); err != nil {
		return l, err
	}
	if getenv(s.size) == "" {
		return l, fmt.Errorf("%w: %s has set %s=%d, but not the number of ranks: set %s to it",
			ErrVariables, s.by, s.rank, l.Rank, s.size)
	}
	if l.Size, err = number(s.size); err != nil {
		return l, err
	}
	if l.Rank >= l.Size {
		return l, fmt.Errorf("%w: %s=%d is out of range for %s=%d", ErrVariables, s.rank, l.Rank, s.size, l.Size)
	}
	l.LocalSize = 1
	if s.local != "" && getenv(s.local) != "" {
		if l.LocalRank, err = number(s.local); err != nil {
			return l, err
		}
		l.LocalSize = parseTasks(getenv(s.localAll), getenv("SLURM_NODEID"))
		if l.LocalSize > l.Size || l.LocalRank >= l.LocalSize && l.LocalSize > 1 {
			return l, fmt.Errorf("%w: %s=%d is out of range for %s=%d and %s=%d", ErrVariables, s.local, l.LocalRank,
				s.localAll,
				l.LocalSize, s.size, l.Size)
		}
	}
	for _, name := range s.job {
		l.Job += name + "=" + getenv(name) + " "
	}
	if len(s.job) == 0 || s.mpi && getenv(s.job[0]) == "" {
		l.Job += "parent=" + strconv.Itoa(os.Getppid())
	}
	return l, nil
}

// parseTasks parses the number of ranks on a machine: a number, or a Slurm list such as 2(x3),1,
// where node is the index of the machine. An invalid node, such as "", means 0. It returns 1 if
// the list is not valid or has no such index.
func parseTasks(list, node string) int {
	at, err := strconv.Atoi(node)
	if err != nil {
		at = 0
	}
	for item := range strings.SplitSeq(list, ",") {
		number, times, repeated := strings.Cut(item, "(x")
		n, err := strconv.Atoi(number)
		nodes := 1
		if repeated {
			nodes, _ = strconv.Atoi(strings.TrimSuffix(times, ")"))
		}
		if err != nil || n < 1 {
			return 1
		}
		if at -= nodes; at < 0 {
			return n
		}
	}
	return 1
}

// Env returns the variables, in the form "key=value", that shoal run must add to the environment
// of the process.
func (l Launch) Env() []string {
	set := func(name string, n int) string { return name + "=" + strconv.Itoa(n) }
	return []string{set("RANK", l.Rank), set("WORLD_SIZE", l.Size), set("LOCAL_RANK", l.LocalRank),
		set("LOCAL_WORLD_SIZE", l.LocalSize), JobKey + "=" + l.Job}
}

package launch_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/launch"
)

func find(env ...string) (launch.Launch, error) {
	all := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		all[name] = value
	}
	all = maps.Clone(all)
	return launch.Find(func(name string) string { return all[name] })
}

// slurm returns what srun sets for a task, and more.
func slurm(env ...string) []string { return append(env, "SLURM_JOB_ID=7", "SLURM_STEP_ID=0") }

func TestFind_EachStarter(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want launch.Launch // without Job
	}{
		{nil, launch.Launch{By: "no known launcher", Size: 1, LocalSize: 1}},
		{[]string{"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
			"OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=1", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1"},
			launch.Launch{By: "mpirun of Open MPI", Rank: 3, Size: 4, LocalRank: 1, LocalSize: 2, MPI: true}},
		{[]string{"PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=2"},
			launch.Launch{By: "mpiexec of MPICH", Size: 2, LocalSize: 2, MPI: true}},
		{[]string{"PMI_RANK=1", "PMI_SIZE=2"},
			launch.Launch{By: "a launcher with PMI", Rank: 1, Size: 2, LocalSize: 1, MPI: true}},
		{slurm("SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=7", "SLURM_LOCALID=1", "SLURM_STEP_TASKS_PER_NODE=2(x3),1",
			"SLURM_NODEID=2"),
			launch.Launch{By: "srun of Slurm", Rank: 5, Size: 7, LocalRank: 1, LocalSize: 2}},
		{slurm("SLURM_PROCID=6", "SLURM_STEP_NUM_TASKS=7", "SLURM_LOCALID=0", "SLURM_STEP_TASKS_PER_NODE=2(x3),1",
			"SLURM_NODEID=3",
			"PMI_RANK=6", "PMI_SIZE=7"),
			launch.Launch{By: "srun --mpi=pmi2 of Slurm", Rank: 6, Size: 7, LocalSize: 1, MPI: true}},
		{slurm("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=1", "SLURM_STEP_TASKS_PER_NODE=2",
			"SLURM_NODEID=0",
			"PMIX_RANK=1", "PMIX_NAMESPACE=slurm.pmix.7.0"),
			launch.Launch{By: "srun --mpi=pmix of Slurm", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, MPI: true}},
		// srun starts its proxies
		{slurm("SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "PMI_RANK=3", "PMI_SIZE=4", "MPI_LOCALRANKID=1",
			"MPI_LOCALNRANKS=2"),
			launch.Launch{By: "mpiexec of MPICH", Rank: 3, Size: 4, LocalRank: 1, LocalSize: 2, MPI: true}},
		// a script of sbatch
		{[]string{"SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NTASKS=4", "SLURM_TASKS_PER_NODE=4"},
			launch.Launch{By: "no known launcher", Size: 1, LocalSize: 1}},
		{[]string{"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=x"},
			launch.Launch{By: "torchrun", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2}},
		{[]string{"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "SHOAL_JOB=x"},
			launch.Launch{By: "shoal run", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2}},
		{[]string{"JOB_COMPLETION_INDEX=2", "WORLD_SIZE=3"},
			launch.Launch{By: "an Indexed Job of Kubernetes", Rank: 2, Size: 3, LocalSize: 1}},
	} {
		got, err := find(c.env...)
		got.Job = ""
		if err != nil || got != c.want {
			t.Errorf("%v: %+v, %v: want %+v", c.env, got, err, c.want)
		}
	}
}

func TestFind_VariablesThatContradictEachOther(t *testing.T) {
	for _, env := range [][]string{
		{"RANK=x", "WORLD_SIZE=2"}, {"RANK=-1", "WORLD_SIZE=2"}, {"RANK=2", "WORLD_SIZE=2"}, {"RANK=0"},
		{"RANK=0", "WORLD_SIZE=many"}, {"JOB_COMPLETION_INDEX=0"},
		{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=3"},
		{"RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"},
		{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE="},
	} {
		if got, err := find(env...); !errors.Is(err, launch.ErrVariables) || !strings.Contains(err.Error(), "=") {
			t.Errorf("%v: %+v, %v", env, got, err)
		}
	}
}

// What shoal run writes is what a rank reads, and jobs differ.
func TestEnv_IsWhatFindReads(t *testing.T) {
	l := launch.Launch{By: "shoal run", Rank: 2, Size: 5, LocalRank: 1, LocalSize: 3, Job: "x"}
	got, err := find(l.Env()...)
	if err != nil || got.Rank != 2 || got.Size != 5 || got.LocalRank != 1 || got.LocalSize != 3 || got.By != l.By {
		t.Errorf("%+v, %v", got, err)
	}
	l.Job = "y"
	if other, err := find(l.Env()...); err != nil || other.Job == got.Job {
		t.Errorf("two jobs are %q and %q, %v", got.Job, other.Job, err)
	}
}

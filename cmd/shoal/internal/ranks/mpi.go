package ranks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// install is the advice for installing an MPI launcher.
const install = "install one, on Debian or Ubuntu with: apt-get install openmpi-bin libopenmpi3; " +
	"on Fedora or RHEL with: dnf install openmpi; or apt-get install mpich"

// RunMPI is like [Job.Run], but the launcher of an MPI library starts the ranks and reaches the
// hosts. The error wraps [ErrOption] if the launcher is not installed or not supported. A
// [*Failure] is of the launcher as a whole, not of a rank.
func (j *Job) RunMPI(ctx context.Context, launcher string, restarts int) error {
	path, err := exec.LookPath(launcher)
	if err != nil {
		return fmt.Errorf("%w: --mpi: no MPI launcher found: %w: %s", ErrOption, err, install)
	}
	version, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s --version: %w: %s", path, err, version)
	}
	args, err := j.launcherArgs(path, string(version))
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		c := exec.Command(path, args...)
		err := j.supervise(ctx, []rank{{-1, "", c}})
		if err == nil || attempt >= restarts || ctx.Err() != nil {
			return err
		}
		words.Fprintf(j.Err, "shoal run: %v; restart %d of %d\n", err, attempt+1, restarts)
	}
}

// launcherArgs returns the arguments for mpirun of Open MPI, or for Hydra, the launcher of MPICH,
// Intel MPI and MVAPICH. version is the text that the launcher at path prints for --version. The
// error wraps [ErrOption] for any other launcher.
func (j *Job) launcherArgs(path, version string) (args []string, err error) {
	var hosts []string
	for _, h := range j.Hosts {
		if h.Name != "" {
			hosts = append(hosts, fmt.Sprintf("%s:%d", h.Name, h.Ranks))
		}
	}
	list := strings.Join(hosts, ",")
	args = []string{"-n", strconv.Itoa(Total(j.Hosts))}
	switch {
	case strings.Contains(version, "Open MPI"), strings.Contains(version, "open-mpi.org"): // Debian prints OpenRTE
		args = append(args, "--oversubscribe") // makes ranks yield if they exceed the CPUs
		if os.Getuid() == 0 {
			args = append(args, "--allow-run-as-root")
		}
		if j.Prefix {
			args = append(args, "--tag-output")
		}
		if list != "" {
			args = append(args, "--host", list)
		}
	case strings.Contains(version, "HYDRA"), strings.Contains(version, "Intel"):
		if j.Prefix {
			args = append(args, "-prepend-rank")
		}
		if list != "" {
			args = append(args, "-hosts", list)
		}
	default:
		return nil, fmt.Errorf("%w: --mpi: launcher %s printed %.80q, want Open MPI's mpirun or Hydra: run the "+
			"launcher directly",
			ErrOption, path, version)
	}
	return append(args, j.Program...), nil
}

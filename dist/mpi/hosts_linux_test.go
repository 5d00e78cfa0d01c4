package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
)

func init() {
	roles["cut"] = func(ctx context.Context) error { return joined(ctx, cutOff) }
}

// spread returns the launcher with flags by which ranks run on hosts that scripts/hosts has made.
func spread(t *testing.T, l launcher, hosts []string, each int) launcher {
	t.Helper()
	agent := os.Getenv("SHOAL_HOSTS_AGENT")
	var list []string
	for _, h := range hosts {
		list = append(list, fmt.Sprintf("%s:%d", h, each))
	}
	at := strings.Join(list, ",")
	switch l.name {
	case "Open MPI":
		l.flags = append(slices.Clone(l.flags), "--host", at, "--mca", "plm_rsh_agent", agent,
			"--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "btl_tcp_if_include", "eth0",
			"--mca", "oob_tcp_if_include", "eth0", "--mca", "pml", "ob1", "-x", roleKey, "-x", "SHOAL_DIST_ENGINE", "-x", "SHOAL_CUT")
	default:
		l.flags = append(slices.Clone(l.flags), "-hosts", at, "-launcher", "ssh", "-launcher-exec", agent,
			"-iface", "eth0")
		l.env = append(slices.Clone(l.env), "UCX_TLS=tcp,self", "UCX_NET_DEVICES=eth0") // else by memory that these hosts share
	}
	return l
}

// hosts returns the names of those that scripts/hosts has made.
func hosts(t *testing.T) []string {
	t.Helper()
	names := strings.Fields(os.Getenv("SHOAL_HOSTS"))
	if len(names) < 4 {
		t.Skip("no hosts: make cluster makes them, by scripts/hosts")
	}
	return names
}

func TestHosts_EveryCall(t *testing.T) {
	names := hosts(t)
	each(t, func(t *testing.T, l launcher) {
		for _, shape := range []struct{ hosts, each int }{{4, 1}, {2, 2}} {
			t.Run(fmt.Sprintf("%dx%d", shape.hosts, shape.each), func(t *testing.T) {
				out, err := spread(t, l, names[:shape.hosts], shape.each).start(t, "suite", 4)
				if err != nil || strings.Count(out, " is done\n") != 4 {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	})
}

// cutOff has all-reduces go on until the host of rank 1 is cut off, which the test does when a file
// says that they have begun.
func cutOff(ctx context.Context, g *dist.Group) error {
	t := tensor.Ones(tensor.Float32, 1<<18)
	for i := 0; ; i++ {
		limit, cancel := context.WithTimeout(ctx, 4*time.Second)
		err := g.AllReduce(limit, dist.Mean, t)
		cancel()
		if err != nil {
			if err := broken("cut off", err); err != nil {
				return err
			}
			fmt.Printf("survivor %d after %d calls: %v\n", g.Rank(), i, err)
			os.Stdout.Sync()
			return err
		}
		if i == 20 && g.Rank() == 0 {
			if err := os.WriteFile(os.Getenv("SHOAL_CUT"), nil, 0o600); err != nil {
				return err
			}
		}
	}
}

// cutTime is how long a launcher has after which it is ended: the ranks' deadlines are 4 s.
const cutTime = 40 * time.Second

// A host that is cut off in the middle of all-reduces: the ranks of the others get the typed error
// by their deadlines, and nothing hangs.
func TestHosts_OneIsCutOff(t *testing.T) {
	names := hosts(t)
	each(t, func(t *testing.T, l launcher) {
		begun := filepath.Join(t.TempDir(), "begun")
		cut := make(chan error, 1)
		victim := os.Getenv("SHOAL_HOSTS_PREFIX") + names[1]
		link := func(state string) error {
			out, err := exec.Command("ip", "-n", victim, "link", "set", "eth0", state).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}
		go func() {
			for t.Context().Err() == nil {
				if _, err := os.Stat(begun); err == nil {
					cut <- link("down")
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
			cut <- errors.New("no all-reduce has begun")
		}()
		l = spread(t, l, names, 1)
		l.limit = cutTime // mpirun of Open MPI waits for ever for the host
		out, err := l.start(t, "cut", 4, "SHOAL_CUT="+begun)
		select {
		case failed := <-cut:
			if failed != nil {
				t.Fatal(failed, "\n", out)
			}
		default:
			t.Fatalf("the host was not cut off: %v\n%s", err, out)
		}
		defer func() {
			if err := link("up"); err != nil {
				t.Error(err)
			}
		}()
		if err == nil || strings.Contains(out, " is done\n") {
			t.Errorf("nobody minds: %v\n%s", err, out)
		}
		if strings.Count(out, "survivor ") < 3 || !strings.Contains(out, "deadline exceeded") {
			t.Errorf("three ranks are not cut off, and each has a deadline")
		}
		t.Logf("%v\n%s", err, out)
		endRanks(t)
	})
}

// endRanks ends the ranks of the host that was cut off, which its launcher cannot reach.
func endRanks(t *testing.T) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		env, err := os.ReadFile(p)
		var pid int
		fmt.Sscanf(p, "/proc/%d/", &pid)
		if err == nil && pid != os.Getpid() && strings.Contains(string(env), "\x00"+roleKey+"=cut\x00") {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

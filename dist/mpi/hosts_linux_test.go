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

// spread returns the launcher with flags by which ranks run on hosts that scripts/hosts has made:
// how many on each, or one after the other on each in turn if turns.
func spread(t *testing.T, l launcher, hosts []string, ranks []int, turns bool) launcher {
	t.Helper()
	agent := os.Getenv("SHOAL_HOSTS_AGENT")
	var list []string
	for i, n := range ranks {
		if turns && l.name != "Open MPI" {
			n = 1
		}
		list = append(list, fmt.Sprintf("%s:%d", hosts[i], n))
	}
	at := strings.Join(list, ",")
	switch l.name {
	case "Open MPI":
		l.flags = append(slices.Clone(l.flags), "--host", at, "--mca", "plm_rsh_agent", agent,
			"--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "btl_tcp_if_include", "eth0",
			"--mca", "oob_tcp_if_include", "eth0", "--mca", "pml", "ob1", "-x", roleKey, "-x", "SHOAL_DIST_ENGINE",
			"-x", "SHOAL_CUT",
			"-x", "GOMAXPROCS", "-x", "SHOAL_DIST_HIERARCHICAL")
		if turns {
			l.flags = append(l.flags, "--map-by", "node")
		}
	default:
		l.flags = append(slices.Clone(l.flags), "-hosts", at, "-launcher", "ssh", "-launcher-exec", agent,
			"-iface", "eth0")
		// else by memory that these hosts share
		l.env = append(slices.Clone(l.env), "UCX_TLS=tcp,self,sysv", "UCX_NET_DEVICES=eth0")
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

// Every call, by the library alone, by hosts, and as it is chosen by the lengths of calls; with as
// many ranks on each host, with more on one than on the other, and with neighbours on other hosts.
func TestHosts_EveryCall(t *testing.T) {
	names := hosts(t)
	each(t, func(t *testing.T, l launcher) {
		for _, c := range []struct {
			name  string
			ranks []int
			turns bool
			ways  []string
		}{
			{"4x1", []int{1, 1, 1, 1}, false, []string{"1"}},
			{"2x2", []int{2, 2}, false, []string{"", "1"}},
			{"2x2InTurns", []int{2, 2}, true, []string{"1"}},
			{"3and1", []int{3, 1}, false, []string{"1"}},
		} {
			for _, way := range c.ways {
				t.Run(c.name+"Way"+way, func(t *testing.T) {
					out, err := spread(t, l, names, c.ranks, c.turns).
						start(t, "suite", 4, "SHOAL_DIST_HIERARCHICAL="+way)
					if err != nil || strings.Count(out, " is done\n") != 4 {
						t.Errorf("%v\n%s", err, out)
					}
					if byHosts := strings.Contains(out,
						"hierarchical, hosts: 2"); byHosts != (len(c.ranks) == 2 && way != "0") {
						t.Errorf("by hosts: %v\n%s", byHosts, out)
					}
					// These hosts are one machine, as containers are.
					if said := strings.Count(out, "run in several containers"); said != 1 &&
						c.name == "4x1" || said > 1 {
						t.Errorf("it is said %d times that ranks do not share memory\n%s", said, out)
					}
				})
			}
		}
	})
}

// A rank of a host is killed, its leader or another one: those beside it are told at once, and
// those on other hosts by them.
func TestHosts_OneRankIsKilled(t *testing.T) {
	names := hosts(t)
	each(t, func(t *testing.T, l launcher) {
		for victim, role := range map[string]string{"1": "dies", "0": "leaderDies"} {
			out, err := spread(t, l, names, []int{2, 2}, false).start(t, role, 4, "SHOAL_DIST_HIERARCHICAL=1")
			if err == nil || strings.Contains(out, " is done\n") || strings.Contains(out, "a survivor: ") {
				t.Errorf("nobody minds: %v\n%s", err, out)
			}
			// Hydra kills the others at once.
			if l.name == "Open MPI" && strings.Count(out, "rank "+victim+": ") < 2 {
				t.Errorf("rank %s is not to blame: %v\n%s", victim, err, out)
			}
			for line := range strings.Lines(out) { // mpirun ends ranks by a signal, which may be first
				if strings.Contains(line, "survivor ") && !strings.Contains(line, "rank "+victim+": ") &&
					!strings.Contains(line, "terminated") {
					t.Errorf("another rank than %s is to blame: %s", victim, line)
				}
			}
			t.Logf("%v\n%s", err, out)
		}
	})
}

// A rank closes its group while those of its host wait for it in shared memory, and those of
// another host for these.
func TestHosts_OneThatLeaves(t *testing.T) {
	names := hosts(t)
	each(t, func(t *testing.T, l launcher) {
		out, _ := spread(t, l, names, []int{2, 2}, false).start(t, "left", 4, "SHOAL_DIST_HIERARCHICAL=1")
		for line := range strings.Lines(out) { // a launcher may end a rank before it hears of the first
			if strings.Contains(line, "rank 1 has left") && !strings.Contains(line, "terminated") {
				t.Errorf("%s", line)
			}
		}
		if strings.Count(out, " is done\n") < 1 {
			t.Errorf("%s", out)
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
			time.Sleep(2 * time.Second) // Hydra ends the other ranks of this host when one leaves without the library
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
	t.Run("4x1", func(t *testing.T) { isCutOff(t, []int{1, 1, 1, 1}, 3) })
	t.Run("2x2", func(t *testing.T) { isCutOff(t, []int{2, 2}, 2) }) // by hosts
}

func isCutOff(t *testing.T, ranks []int, survivors int) {
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
		l = spread(t, l, names, ranks, false)
		l.limit = cutTime // mpirun of Open MPI waits for ever for the host
		out, err := l.start(t, "cut", 4, "SHOAL_CUT="+begun, "SHOAL_DIST_HIERARCHICAL=1")
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
		if strings.Count(out, "survivor ") < survivors || !strings.Contains(out, "deadline exceeded") {
			t.Errorf("%d ranks are not cut off, and each has a deadline", survivors)
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

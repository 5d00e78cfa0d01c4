package sys_test

import (
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// self is the process in all fixtures.
const self = 42

// tree is a file system of small files: name to contents.
func tree(parts ...map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for _, files := range parts {
		for name, data := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(data)}
		}
	}
	return fsys
}

// under prefixes all names with dir.
func under(dir string, files map[string]string) map[string]string {
	all := make(map[string]string)
	for name, data := range maps.All(files) {
		all[dir+"/"+name] = data
	}
	return all
}

func stat(parent string) string {
	return "42 (a (b) c) S " + parent + strings.Repeat(" 0", 17) + " 777 0 0\n"
}

// machine has 16 GiB, of which 12 GiB are available, and processes 42 and its child 43.
var machine = map[string]string{
	"proc/meminfo": "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:   12582912 kB\n",
	"proc/vmstat":  "pgfault 9\noom_kill 11\n",
	"proc/42/stat": stat("7"),
	"proc/43/stat": stat("42"),
	"proc/7/stat":  stat("1"),
}

var v2 = map[string]string{
	"proc/self/cgroup": "0::/user/app\n",
	"proc/self/mountinfo": "20 1 0:3 / /proc rw - proc proc rw\n30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - " +
		"cgroup2 cgroup2 rw,nsdelegate\n",
}

var v1 = map[string]string{
	"proc/self/cgroup": "4:memory:/user/app\n3:cpuset:/\n2:cpu,cpuacct:/user/app\n",
	"proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
}

// hybrid is the version 1 tree with an empty version 2 beside it, as systemd mounts it.
var hybrid = map[string]string{
	"proc/self/cgroup": v1["proc/self/cgroup"] + "0::/user/app\n",
	"proc/self/mountinfo": v1["proc/self/mountinfo"] +
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
	"sys/fs/cgroup/unified/cgroup.procs":  "",
	"sys/fs/cgroup/unified/user/app/x":    "",
	"sys/fs/cgroup/unified/user/cpu.stat": "",
}

const gib = 1 << 30

func TestMemoryLimitOfFixtures(t *testing.T) {
	none := sys.Memory{Total: 16 * gib, Available: 12 * gib, CgroupLimit: -1, Shared: true}
	with := func(limit, usage, cache int64, shared bool) sys.Memory {
		m := none
		m.CgroupLimit, m.CgroupUsage, m.CgroupReclaimable, m.Shared = limit, usage, cache, shared
		return m
	}
	app2 := under("sys/fs/cgroup/user/app", map[string]string{
		"memory.max": "4294967296\n", "memory.high": "max\n", "memory.current": "1073741824\n",
		"memory.stat": "anon 5\nfile 9999\nshmem 8888\ninactive_file 100\nactive_file 20\n", "cgroup.procs": "42\n43\n",
	})
	app1 := under("sys/fs/cgroup/memory/user/app", map[string]string{
		"memory.limit_in_bytes": "4294967296\n", "memory.usage_in_bytes": "1073741824\n",
		"memory.stat": "cache 9999\ntotal_inactive_file 100\ntotal_active_file 20\nhierarchical_memory_limit " +
			"9223372036854771712\n",
		"cgroup.procs": "42\n",
	})
	for name, c := range map[string]struct {
		root fs.FS
		want sys.Memory
	}{
		"no control groups at all": {tree(machine), none},
		"v2 without a memory controller": {
			tree(machine, v2, map[string]string{"sys/fs/cgroup/user/app/cgroup.procs": "42\n"}), none},
		"v2 max": {tree(machine, v2, app2, map[string]string{"sys/fs/cgroup/user/app/memory.max": "max\n"}), none},
		"v2":     {tree(machine, v2, app2), with(4*gib, gib, 120, false)},
		"v2 high below max": {
			tree(machine, v2, app2, map[string]string{"sys/fs/cgroup/user/app/memory.high": "2147483648\n"}),
			with(2*gib, gib, 120, false)},
		"v2 with a stranger in the group": {
			tree(machine, v2, app2, map[string]string{"sys/fs/cgroup/user/app/cgroup.procs": "42\n7\n"}),
			with(4*gib, gib, 120, true)},
		"v2 with a process that has ended": {
			tree(machine, v2, app2, map[string]string{"sys/fs/cgroup/user/app/cgroup.procs": "42\n99\n"}),
			with(4*gib, gib, 120, false)},
		"v2 with a group inside": {
			tree(machine, v2, app2, map[string]string{"sys/fs/cgroup/user/app/inner/cgroup.procs": ""}),
			with(4*gib, gib, 120, true)},
		"v2 with an ancestor that has less room though a higher limit": {
			tree(machine, v2, app2, under("sys/fs/cgroup/user", map[string]string{
				"memory.max": "8589934592\n", "memory.current": "8589934000\n", "cgroup.procs": ""})),
			with(8*gib, 8589934000, 0, false)},
		"v2 with an ancestor that has siblings of ours": {
			tree(machine, v2, app2, under("sys/fs/cgroup/user", map[string]string{
				"memory.max": "1024\n", "memory.current": "0\n", "cgroup.procs": "", "other/cgroup.procs": ""})),
			with(1024, 0, 0, true)},
		"v2 in a container that sees the path of its host": {
			tree(machine, v2, map[string]string{
				"proc/self/cgroup": "0::/docker/abc\n", "sys/fs/cgroup/memory.max": "1024\n",
				"sys/fs/cgroup/memory.current": "24\n", "sys/fs/cgroup/cgroup.procs": "42"}),
			with(1024, 24, 0, false)},
		"v2 whose mount shows our group as its top": {
			tree(machine, app2, map[string]string{
				"proc/self/cgroup":    "0::/docker/abc/user/app\n",
				"proc/self/mountinfo": "30 20 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}),
			with(4*gib, gib, 120, false)},
		"v2 mounted at a name with a blank": {
			tree(machine, under("mnt/c g/user/app", map[string]string{"memory.max": "1024\n", "cgroup.procs": "42"}),
				map[string]string{
					"proc/self/cgroup":    "0::/user/app\n",
					"proc/self/mountinfo": "30 20 0:26 / /mnt/c\\040g rw - cgroup2 cgroup2 rw\n"}),
			with(1024, 0, 0, false)},
		"v1": {tree(machine, v1, app1), with(4*gib, gib, 120, false)},
		"v1 unlimited": {
			tree(machine, v1, app1, map[string]string{
				"sys/fs/cgroup/memory/user/app/memory.limit_in_bytes": "9223372036854771712\n"}), none},
		"v1 limited by an ancestor that is not mounted": {
			tree(machine, v1, app1, map[string]string{
				"sys/fs/cgroup/memory/user/app/memory.stat": "hierarchical_memory_limit 2147483648\n"}),
			with(2*gib, gib, 0, false)},
		"v1 with a tighter ancestor": {
			tree(machine, v1, app1, under("sys/fs/cgroup/memory/user", map[string]string{
				"memory.limit_in_bytes": "2147483648\n", "memory.usage_in_bytes": "2147480000\n", "cgroup.procs": ""})),
			with(2*gib, 2147480000, 0, false)},
		"hybrid": {tree(machine, hybrid, app1), with(4*gib, gib, 120, false)},
	} {
		got, err := sys.MemoryLimitIn(c.root, self)
		if err != nil || got != c.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", name, got, err, c.want)
		}
	}
}

func TestMemoryLimitNeedsMeminfo(t *testing.T) {
	if m, err := sys.MemoryLimitIn(tree(v2), self); err == nil {
		t.Errorf("without /proc/meminfo: %+v", m)
	}
}

func TestHeadroomKeepsAReserve(t *testing.T) {
	for name, c := range map[string]struct {
		m    sys.Memory
		want int64
	}{
		"a tenth of a big machine":  {sys.Memory{Total: 100 * gib, Available: 50 * gib, CgroupLimit: -1}, 40 * gib},
		"256 MiB of a middling one": {sys.Memory{Total: 2 * gib, Available: gib, CgroupLimit: -1}, gib - 256*mib},
		"a quarter of a small group": {sys.Memory{Total: 100 * gib, Available: 50 * gib,
			CgroupLimit: 256 * mib}, 192 * mib},
		"cache counts as room": {sys.Memory{Total: 100 * gib, Available: 50 * gib,
			CgroupLimit: 10 * gib, CgroupUsage: 10 * gib, CgroupReclaimable: 3 * gib}, 2 * gib},
		"the machine may be tighter": {sys.Memory{Total: 100 * gib, Available: 11 * gib, CgroupLimit: 50 * gib}, gib},
		"nothing is never negative": {sys.Memory{Total: 100 * gib, Available: 50 * gib, CgroupLimit: gib,
			CgroupUsage: 2 * gib}, 0},
		"a machine that is exhausted": {sys.Memory{Total: 100 * gib, Available: gib, CgroupLimit: -1}, 0},
	} {
		if got := c.m.Headroom(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestOOMKillsOfFixtures(t *testing.T) {
	for name, c := range map[string]struct {
		root   fs.FS
		n      int64
		shared bool
	}{
		"v2": {tree(machine, v2, under("sys/fs/cgroup/user/app", map[string]string{
			"memory.events": "low 0\noom 5\noom_kill 3\noom_group_kill 9\n", "cgroup.procs": "42\n"})), 3, false},
		"v1 shared": {tree(machine, v1, under("sys/fs/cgroup/memory/user/app", map[string]string{
			"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
			"cgroup.procs":       "42\n7\n"})), 4, true},
		"the machine's where no group counts": {tree(machine), 11, true},
	} {
		if n, shared, err := sys.OOMKillsIn(c.root, self); n != c.n || shared != c.shared || err != nil {
			t.Errorf("%s: %d, %v, %v; want %d, %v", name, n, shared, err, c.n, c.shared)
		}
	}
	if n, _, err := sys.OOMKillsIn(tree(), self); err == nil {
		t.Errorf("without any file: %d", n)
	}
}

func TestCPUsOfFixtures(t *testing.T) {
	app2, app1 := "sys/fs/cgroup/user/app/", "sys/fs/cgroup/cpu,cpuacct/user/app/"
	for name, c := range map[string]struct {
		root fs.FS
		want int
	}{
		"no control groups": {tree(), 16},
		"v2 max":            {tree(v2, map[string]string{app2 + "cpu.max": "max 100000\n"}), 16},
		"v2 2.5 are 3":      {tree(v2, map[string]string{app2 + "cpu.max": "250000 100000\n"}), 3},
		"v2 2 are 2":        {tree(v2, map[string]string{app2 + "cpu.max": "200000 100000\n"}), 2},
		"v2 0.1 are 1":      {tree(v2, map[string]string{app2 + "cpu.max": "10000 100000\n"}), 1},
		"v2 above affinity": {tree(v2, map[string]string{app2 + "cpu.max": "6400000 100000\n"}), 16},
		"v2 ancestor": {tree(v2, map[string]string{app2 + "cpu.max": "400000 100000\n",
			"sys/fs/cgroup/user/cpu.max": "200000 100000"}), 2},
		"v1 none": {tree(v1, map[string]string{app1 + "cpu.cfs_quota_us": "-1\n",
			app1 + "cpu.cfs_period_us": "100000\n"}), 16},
		"v1": {tree(v1, map[string]string{app1 + "cpu.cfs_quota_us": "300000\n",
			app1 + "cpu.cfs_period_us": "100000\n"}), 3},
		"hybrid": {tree(hybrid,
			map[string]string{app1 + "cpu.cfs_quota_us": "300000\n", app1 + "cpu.cfs_period_us": "100000\n"}), 3},
		"nonsense": {tree(v2, map[string]string{app2 + "cpu.max": "many 0\n"}), 16},
	} {
		if got := sys.CPUsIn(c.root, 16); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestAddressBitsOfFixtures(t *testing.T) {
	for data, want := range map[string]int{
		"model name\t: x\naddress sizes\t: 46 bits physical, 48 bits virtual\n": 47,
		"address sizes\t: 52 bits physical, 57 bits virtual\n":                  47,
		"address sizes\t: 36 bits physical, 39 bits virtual\n":                  38,
		"address sizes\t: nonsense\n":                                           47,
		"BogoMIPS\t: 50.00\n":                                                   47,
	} {
		if got := sys.AddressBitsIn(tree(map[string]string{"proc/cpuinfo": data})); got != want {
			t.Errorf("%q: %d bits, want %d", data, got, want)
		}
	}
}

func TestProcessFilesOfFixtures(t *testing.T) {
	root := tree(machine, map[string]string{
		"proc/42/smaps_rollup":   "5000-6000 ---p 0 00:00 0 [rollup]\nRss: 90 kB\nPss:     12 kB\nPss_Dirty: 3 kB\n",
		"proc/42/status":         "VmHWM:\t 9 kB\nVmRSS:\t 8 kB\nRssAnon:\t 3 kB\n",
		"proc/42/task/42/status": "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t100\n",
		"proc/42/task/44/status": "voluntary_ctxt_switches:\t7\n",
	})
	if n, err := sys.StartTimeIn(root, self); n != 777 || err != nil {
		t.Errorf("start time %d, %v: a name with parentheses must not move the fields", n, err)
	}
	if n, err := sys.PSSIn(root, self); n != 12<<10 || err != nil {
		t.Errorf("PSS %d, %v", n, err)
	}
	if m, err := sys.ResidentMemoryIn(root, self); m != (sys.Resident{Peak: 9 << 10, Private: 3 << 10}) || err != nil {
		t.Errorf("%+v, %v", m, err)
	}
	if n, err := sys.ContextSwitchesIn(root, self); n.Voluntary != 12 || err != nil {
		t.Errorf("%+v switches, %v", n, err)
	}
}

func TestThisMachineAnswers(t *testing.T) {
	m := testutil.Value(sys.MemoryLimit())(t)
	if m.Total <= 0 || m.Available <= 0 || m.Available > m.Total {
		t.Errorf("%+v", m)
	}
	if n := m.Headroom(); n < 0 || n > m.Available {
		t.Errorf("headroom %d of %+v", n, m)
	}
	if n, _, err := sys.OOMKills(); n < 0 || err != nil {
		t.Errorf("%d processes killed, %v", n, err)
	}
	if n := sys.CPUs(); n < 1 {
		t.Errorf("%d processors", n)
	}
	if n := sys.AddressBits(); n < 32 || n > 47 {
		t.Errorf("%d bits of address", n)
	}
}

// FuzzCgroup feeds arbitrary bytes to everything that reads control groups: no input may panic, and
// every answer must stay within what it means.
func FuzzCgroup(f *testing.F) {
	f.Add(v2["proc/self/cgroup"], v2["proc/self/mountinfo"], "max\n", "inactive_file 5\n", "42\n")
	f.Add(v1["proc/self/cgroup"], v1["proc/self/mountinfo"], "1024\n", "hierarchical_memory_limit 5\n", "42\n7\n")
	f.Add("0::/../..\n", "1 2 3 /.. /sys/.. x - cgroup2 a b", "-1 0", "oom_kill 1", "-5")
	f.Fuzz(func(t *testing.T, cgroup, mountinfo, value, stat, procs string) {
		root := tree(machine, map[string]string{
			"proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo, "proc/cpuinfo": stat,
		})
		for _, dir := range []string{"sys/fs/cgroup", "sys/fs/cgroup/user/app",
			"sys/fs/cgroup/memory/user/app", "sys/fs/cgroup/cpu,cpuacct"} {
			for _, file := range []string{"memory.max", "memory.current", "memory.limit_in_bytes", "cpu.max",
				"cpu.cfs_quota_us", "cpu.cfs_period_us"} {
				root.(fstest.MapFS)[dir+"/"+file] = &fstest.MapFile{Data: []byte(value)}
			}
			for _, file := range []string{"memory.stat", "memory.events", "memory.oom_control"} {
				root.(fstest.MapFS)[dir+"/"+file] = &fstest.MapFile{Data: []byte(stat)}
			}
			root.(fstest.MapFS)[dir+"/cgroup.procs"] = &fstest.MapFile{Data: []byte(procs)}
		}
		if n := sys.CPUsIn(root, 8); n < 1 || n > 8 {
			t.Errorf("%d processors", n)
		}
		m, err := sys.MemoryLimitIn(root, self)
		if room := m.Headroom(); err == nil && (room < 0 || room > m.Available) {
			t.Errorf("headroom %d of %+v", room, m)
		}
		if n, _, err := sys.OOMKillsIn(root, self); err == nil && n < 0 {
			t.Errorf("%d processes killed", n)
		}
		if n := sys.AddressBitsIn(root); n < 32 || n > 47 {
			t.Errorf("%d bits of address", n)
		}
	})
}

// FuzzStat feeds arbitrary bytes to the parsers of a process's files.
func FuzzStat(f *testing.F) {
	f.Add(stat("1"), "Pss: 5 kB\n")
	f.Add("42 (", "Pss:")
	f.Add(")", "Pss: 99999999999999999999")
	f.Fuzz(func(t *testing.T, stat, status string) {
		root := tree(map[string]string{
			"proc/42/stat": stat, "proc/42/status": status, "proc/42/smaps_rollup": status,
			"proc/42/task/42/status": status,
		})
		if n, err := sys.StartTimeIn(root, self); err != nil && n != 0 {
			t.Errorf("start time %d with %v", n, err)
		}
		if n, err := sys.PSSIn(root, self); n < 0 {
			t.Errorf("PSS %d, %v", n, err)
		}
		if m, err := sys.ResidentMemoryIn(root, self); m.Peak < 0 || m.Private < 0 {
			t.Errorf("%+v, %v", m, err)
		}
		if n, err := sys.ContextSwitchesIn(root, self); n.Voluntary < 0 || n.Involuntary < 0 {
			t.Errorf("%+v switches, %v", n, err)
		}
	})
}

func BenchmarkMemoryLimit(b *testing.B) {
	for b.Loop() {
		if _, err := sys.MemoryLimit(); err != nil {
			b.Fatal(err)
		}
	}
}

// A frozen process is as still as a stopped one, and its state does not say so.
func TestStopped_BySignalsAndByControlGroups(t *testing.T) {
	freezer := "36 31 0:33 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
	for _, c := range []struct {
		name  string
		files []map[string]string
		want  bool
	}{
		{"running", []map[string]string{machine, v2, {"proc/42/cgroup": "0::/user/app\n",
			"sys/fs/cgroup/user/app/cgroup.events": "populated 1\nfrozen 0\n"}}, false},
		{"stopped", []map[string]string{{"proc/42/stat": strings.Replace(stat("7"), ") S", ") T", 1)}}, true},
		{"traced", []map[string]string{{"proc/42/stat": strings.Replace(stat("7"), ") S", ") t", 1)}}, true},
		{"frozen, version 2", []map[string]string{machine, v2, {"proc/42/cgroup": "0::/user/app\n",
			"sys/fs/cgroup/user/app/cgroup.events": "populated 1\nfrozen 1\n"}}, true},
		{"another group is frozen", []map[string]string{machine, v2, {"proc/42/cgroup": "0::/user/app\n",
			"sys/fs/cgroup/user/app/cgroup.procs": "", "sys/fs/cgroup/user/other/cgroup.events": "frozen 1\n"}}, false},
		{"frozen with the group above, version 1", []map[string]string{machine,
			{"proc/self/mountinfo": v1["proc/self/mountinfo"] + freezer, "proc/42/cgroup": "6:freezer:/user/app\n",
				"sys/fs/cgroup/freezer/user/app/cgroup.procs": "",
				"sys/fs/cgroup/freezer/user/freezer.state":    "FROZEN\n"}}, true},
		{"thawed, version 1", []map[string]string{machine,
			{"proc/self/mountinfo": v1["proc/self/mountinfo"] + freezer, "proc/42/cgroup": "6:freezer:/user/app\n",
				"sys/fs/cgroup/freezer/user/app/freezer.state": "THAWED\n"}}, false},
		{"nobody", nil, false},
	} {
		if got := sys.StoppedIn(tree(c.files...), self); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

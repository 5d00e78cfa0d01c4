package bench

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
)

var pythonSuite = Suite{
	Name:    "python",
	Doc:     "shoal.multiprocessing between Python processes, compared with torch.multiprocessing, iceoryx2 and Ray",
	peer:    "torch_python.py",
	partner: findPythonPackage,
	groups:  append(pythonRows(), pythonStartRows, otherPythonRows("iceoryx2", 1), otherPythonRows("ray", 10)),
}

// floorVariant selects the variant of a script that measures the floor of a row.
const floorVariant = "floor"

// pythonRows returns the constructors of the rows of messages between two Python processes. Each
// is a group, so that it is printed, and repeated if it is noisy, without the others. The floors
// are round trips in Python, too: of a byte that both sides poll, and of an eventfd. If a row
// writes to its tensor, its floor writes to a tensor as often.
func pythonRows() (rows []func(context.Context, *environment) (group, error)) {
	for _, r := range []struct {
		name         string
		unit         Unit
		op           string
		size, rounds int
		floor        bool
		target       Target
	}{
		{"rtt_1MiB", Nanoseconds, "rtt", mib, 500, true, atMost(5e3, "5 µs")},
		{"rtt_1MiB_parked", Nanoseconds, "parked", mib, 300, true, overFloor(1.2)},
		{"value_rtt", Nanoseconds, "echo", 0, 2000, true, timesPeer(5)},
		{"value_rtt_parked", Nanoseconds, "wake", 0, 300, true, overFloor(1.2)},
		{"values_per_s", PerSecond, "count_small", 0, 20_000, false, timesPeer(5)},
		{"tensors_4KiB_per_s", PerSecond, "count", 4 * kib, 10_000, false, atLeast(300e3, "300 k/s")},
		{"call", Nanoseconds, "call", 0, 100_000, true, nil},
	} {
		rows = append(rows, func(_ context.Context, h *environment) (group, error) {
			work := &peerWork{op: r.op, ours: r.op, Size: r.size, Rounds: max(h.scaleRounds(r.rounds), 10)}
			row := Case{Name: "python_" + r.name, Unit: r.unit, Peer: work, Target: r.target}
			if r.floor {
				row.floorWork = work
			}
			return group{rounds: 7, cases: []Case{row}}, nil
		})
	}
	return rows
}

// otherPythonRows returns a constructor of the rows of messages through another library: Shoal's
// messages and the library's are measured by turns. The numbers of rounds are divided by slower.
// Each library has a group of its own, so that its processes run only while they are measured;
// Ray's are the last.
func otherPythonRows(library string, slower int) func(context.Context, *environment) (group, error) {
	return func(_ context.Context, h *environment) (group, error) {
		row := func(name, op string, unit Unit, size, rounds int) Case {
			return Case{Name: "python_" + name + "_" + library, Unit: unit, Peer: &peerWork{op: op + " " + library,
				ours: op, Size: size, Rounds: max(h.scaleRounds(rounds/slower), 10)}}
		}
		return group{rounds: 5, needs: library, cases: []Case{
			row("rtt_1MiB", "rtt", Nanoseconds, mib, 2000),
			row("rtt_1MiB_parked", "parked", Nanoseconds, mib, 300),
			row("value_rtt", "echo", Nanoseconds, 0, 2000),
			row("tensors_4KiB_per_s", "count", PerSecond, 4*kib, 20_000),
		}}, nil
	}
}

// pythonStartRows returns rows of the import time and of the memory of fresh Python processes.
func pythonStartRows(context.Context, *environment) (group, error) {
	return group{rounds: 5, cases: []Case{
		{Name: "python_import", Unit: Nanoseconds, Peer: &peerWork{op: "import", ours: "import"},
			Target: atMost(60e6, "60 ms")},
		{Name: "python_memory", Unit: Bytes, Peer: &peerWork{op: "memory", ours: "memory"},
			Target: atMost(20*mib, "20 MiB")},
	}}, nil
}

// findPythonPackage returns the environment of the peer's script. If the working directory is in
// a clone with native parts, PYTHONPATH begins with the package in the clone, so that it has
// precedence over an installed one. It ignores the script's directory.
func findPythonPackage(context.Context, string) (env []string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		built := filepath.Join(dir, "build", "native", runtime.GOARCH, "python")
		if _, err := os.Stat(filepath.Join(built, "shoal", "libshoal.so")); err == nil {
			return append(os.Environ(), "PYTHONPATH="+built+string(os.PathListSeparator)+os.Getenv("PYTHONPATH")), nil
		}
	}
	return os.Environ(), nil
}

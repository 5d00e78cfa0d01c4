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
	groups: []func(context.Context, *environment) (group, error){pythonRows, pythonStartRows,
		otherPythonRows("iceoryx2", 1), otherPythonRows("ray", 10)},
}

// floorVariant selects the variant of a script that measures the floor of a row.
const floorVariant = "floor"

// pythonRows returns the rows of messages between two Python processes. The floors are round trips
// in Python, too: of a byte that both sides poll, and of an eventfd. If a row writes to its tensor,
// its floor writes to a tensor as often.
func pythonRows(_ context.Context, h *environment) (group, error) {
	work := func(op string, size, rounds int) *peerWork {
		return &peerWork{op: op, ours: op, Size: size, Rounds: max(h.scaleRounds(rounds), 10)}
	}
	polled, parked := work("echo", 0, 2000), work("wake", 0, 300)
	return group{rounds: 7, cases: []Case{
		{Name: "python_rtt_1MiB", Unit: Nanoseconds, Peer: work("rtt", mib, 2000), floorWork: work("rtt", mib, 2000),
			Target: atMost(5e3, "5 µs")},
		{Name: "python_rtt_1MiB_parked", Unit: Nanoseconds, Peer: work("parked", mib, 300), floorWork: work("parked", mib, 300),
			Target: overFloor(1.2)},
		{Name: "python_value_rtt", Unit: Nanoseconds, Peer: work("echo", 0, 2000), floorWork: polled,
			Target: timesPeer(5)},
		{Name: "python_value_rtt_parked", Unit: Nanoseconds, Peer: work("wake", 0, 300), floorWork: parked,
			Target: overFloor(1.2)},
		{Name: "python_values_per_s", Unit: PerSecond, Peer: work("count_small", 0, 20_000), Target: timesPeer(5)},
		{Name: "python_tensors_4KiB_per_s", Unit: PerSecond, Peer: work("count", 4*kib, 20_000),
			Target: atLeast(300e3, "300 k/s")},
		{Name: "python_call", Unit: Nanoseconds, Peer: work("call", 0, 100_000), floorWork: work("call", 0, 100_000)},
	}}, nil
}

// otherPythonRows returns the rows of messages through another library: Shoal's messages and the
// library's are measured by turns. The numbers of rounds are divided by slower. Each library has a
// group of its own, so that its processes run only while they are measured; Ray's are the last.
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

// pythonStartRows returns the rows of fresh Python processes.
func pythonStartRows(context.Context, *environment) (group, error) {
	return group{rounds: 5, cases: []Case{
		{Name: "python_import", Unit: Nanoseconds, Peer: &peerWork{op: "import", ours: "import"},
			Target: atMost(60e6, "60 ms")},
		{Name: "python_memory", Unit: Bytes, Peer: &peerWork{op: "memory", ours: "memory"},
			Target: atMost(20*mib, "20 MiB")},
	}}, nil
}

// findPythonPackage returns the environment of the script: in a clone with native parts, the
// package in the clone has precedence over an installed one.
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

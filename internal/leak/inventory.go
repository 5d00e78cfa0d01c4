package leak

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A Program holds the functions of the root package that tests need. The root package must set it
// in [Processes], because this package cannot import the root package.
type Program struct {
	Begin    func()          // in a worker: serves, and does not return
	Rest     func(bool)      // ends idle processes; true means that no more will be needed
	Children func() []string // describes the child processes that still exist
	End      func()          // ends these child processes
	Leave    func()          // leaves the domain
}

// Processes is set by the root package.
var Processes Program

// An Inventory lists the resources of a process at one time. Resources that exist later and are not
// in it are leaks.
type Inventory struct {
	blocks      int
	goroutines  map[string]string // by id
	descriptors map[string]string // by number and target
}

// Take returns the inventory of this process.
func Take() Inventory {
	n, _ := countBlocks()
	return Inventory{n, describeGoroutines(), describeDescriptors()}
}

// Leave shuts down Shoal in this process, step by step, and describes the resources leaked at each
// step. Shoal must not be used afterwards.
func (before Inventory) Leave() (left []string) {
	Processes.Rest(true)
	left = Processes.Children()
	Processes.End()
	left = append(left, Settled(before.Blocks)...)
	Processes.Leave()
	return append(left, Settled(func() []string {
		return append(describeAdded(before.goroutines, describeGoroutines()),
			describeAdded(before.descriptors, describeDescriptors())...)
	})...)
}

// Settled calls leftovers until it returns none, for at most five seconds, and returns its last
// result. It runs the garbage collector between the calls, because goroutines take a moment to end
// and unreachable objects must be collected.
func Settled(leftovers func() []string) []string {
	const patience, often = 5 * time.Second, 10 * time.Millisecond
	for end := time.Now().Add(patience); ; time.Sleep(often) {
		left := leftovers()
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
		runtime.GC()
	}
}

// describeAdded returns the sorted descriptions of the entries of now with keys that before does
// not have.
func describeAdded(before, now map[string]string) (all []string) {
	for key, text := range now {
		if _, ok := before[key]; !ok {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// Blocks returns nil if the domain has no more blocks in use than before. Otherwise the first
// string tells how many more, and the others describe all blocks that this process holds.
func (before Inventory) Blocks() []string {
	n, mine := countBlocks()
	if n <= before.blocks {
		return nil
	}
	all := []string{fmt.Sprintf("%d blocks of shared memory, %d of them held by this process; set "+
		"SHOAL_DEBUG=lifetime to see where each was allocated", n-before.blocks, len(mine))}
	for _, h := range mine {
		all = append(all, strings.ReplaceAll(strings.TrimSpace(h.String()), "\n", "\n\t"))
	}
	return all
}

// countBlocks returns the number of blocks in use in the domain of this process, and the blocks
// that the process itself holds.
func countBlocks() (n int, mine []arena.Holding) {
	d := arena.Current()
	if d == nil {
		return 0, nil
	}
	return d.Stats().Blocks, d.Holdings()
}

// describeGoroutines describes the goroutines of this process by their numbers, except the caller
// and the permanent ones of the testing package and the runtime.
func describeGoroutines() map[string]string {
	all := make(map[string]string)
	dump := make([]byte, 1<<20)
	for n, text := range strings.Split(string(dump[:runtime.Stack(dump, true)]), "\n\n") {
		head, frames, _ := strings.Cut(text, "\n")
		if n > 0 && !slices.ContainsFunc(kept, func(f string) bool { return strings.Contains(frames, f) }) {
			id, _, _ := strings.Cut(strings.TrimPrefix(head, "goroutine "), " ")
			all[id] = head + "\n\t\t" + strings.ReplaceAll(strings.TrimSpace(frames), "\n", "\n\t\t")
		}
	}
	return all
}

// kept lists functions of goroutines that begin once and never end.
var kept = []string{"os/signal.signal_recv(", "os/signal.loop(", "runtime.ensureSigM", "testing.(*M).startAlarm"}

// describeDescriptors describes the descriptors of this process. The keys are as for
// filterDescriptors. It finds none on systems without /proc.
func describeDescriptors() map[string]string {
	entries, _ := os.ReadDir("/proc/self/fd")
	open := make(map[string]string)
	for _, e := range entries {
		// the directory's own descriptor is closed by now
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open[e.Name()] = to
		}
	}
	all := filterDescriptors(open)
	for number, to := range open {
		if _, ok := all[number+" "+to]; ok {
			all[number+" "+to] += openerStack(number, to)
		}
	}
	return all
}

// filterDescriptors describes descriptors. open maps their numbers to their targets; the keys of
// the result consist of number and target, separated by a space. NVIDIA's driver keeps its device
// files open until the process ends, together with pipes, sockets and event descriptors that cannot
// be distinguished from others. So if the driver is loaded, none of these kinds is described.
func filterDescriptors(open map[string]string) map[string]string {
	driver := false
	for _, to := range open {
		driver = driver || strings.HasPrefix(to, nvidia)
	}
	all := make(map[string]string)
	for number, to := range open {
		if driver && slices.ContainsFunc(drivers, func(prefix string) bool { return strings.HasPrefix(to, prefix) }) {
			continue
		}
		all[number+" "+to] = fmt.Sprintf("descriptor %s: %s", number, to)
	}
	return all
}

// nvidia is the prefix of the driver's device files. drivers lists the prefixes of all descriptors
// that driver 580 keeps open, also under the tool compute-sanitizer.
const nvidia = "/dev/nvidia"

var drivers = []string{nvidia, "pipe:", "socket:", "anon_inode:[eventfd]", "anon_inode:[eventpoll]",
	"anon_inode:[timerfd]"}

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

// A Program is what the root package does for tests.
type Program struct {
	Begin    func()          // serves, and does not return, in a worker
	Rest     func(bool)      // ends the processes that wait for work; true: there will be no more
	Children func() []string // describes the child processes that still are there
	End      func()          // ends those
	Leave    func()          // gives up the domain
}

// Processes is set by the root package.
var Processes Program

// An Inventory is what a process has besides its memory. What is there later and not in it is left
// over.
type Inventory struct {
	blocks      int
	goroutines  map[string]string // by id
	descriptors map[string]string // by number and what it refers to
}

// Take makes the inventory of this process.
func Take() Inventory {
	n, _ := blocks()
	return Inventory{n, goroutines(), descriptors()}
}

// Leave ends all that Shoal has in this process, step by step, and describes what is left over at
// each.
func (before Inventory) Leave() (left []string) {
	Processes.Rest(true)
	left = Processes.Children()
	Processes.End()
	left = append(left, Settled(before.Blocks)...)
	Processes.Leave()
	return append(left, Settled(func() []string {
		return append(added(before.goroutines, goroutines()), added(before.descriptors, descriptors())...)
	})...)
}

// Settled asks until nothing is left over, since goroutines take a moment to end and garbage to be
// found, but for five seconds at most.
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

// added describes what is in now and was not in before.
func added(before, now map[string]string) (all []string) {
	for key, text := range now {
		if _, ok := before[key]; !ok {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// Blocks describes the blocks of the domain that are in use and were not before.
func (before Inventory) Blocks() []string {
	n, mine := blocks()
	if n <= before.blocks {
		return nil
	}
	all := []string{fmt.Sprintf("%d blocks of shared memory, %d of them held by this process; "+
		"SHOAL_DEBUG=lifetime tells where each is from", n-before.blocks, len(mine))}
	for _, h := range mine {
		all = append(all, strings.ReplaceAll(strings.TrimSpace(h.String()), "\n", "\n\t"))
	}
	return all
}

// blocks returns how many blocks are in use in the domain of this process, and which of them it
// holds itself.
func blocks() (n int, mine []arena.Holding) {
	d := arena.Current()
	if d == nil {
		return 0, nil
	}
	return d.Stats().Blocks, d.Holdings()
}

// goroutines describes those of this process but for the caller and those that the testing package
// and the runtime keep.
func goroutines() map[string]string {
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

// kept are functions of goroutines that begin once and never end.
var kept = []string{"os/signal.signal_recv(", "os/signal.loop(", "runtime.ensureSigM", "testing.(*M).startAlarm"}

// descriptors describes those of this process; it finds none on systems without /proc.
func descriptors() map[string]string {
	entries, _ := os.ReadDir("/proc/self/fd")
	open := make(map[string]string)
	for _, e := range entries {
		// that of the folder itself is closed by now
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open[e.Name()] = to
		}
	}
	all := describe(open)
	for number, to := range open {
		if _, ok := all[number+" "+to]; ok {
			all[number+" "+to] += opener(number, to)
		}
	}
	return all
}

// describe describes descriptors, by number and what each refers to. NVIDIA's driver keeps its
// device files as long as the process lives, and pipes, sockets and events beside them, which look
// like anybody's: where it is loaded none of these is described.
func describe(open map[string]string) map[string]string {
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

// nvidia begins the names of the driver's device files, and drivers what the driver 580 keeps, and
// the tool compute-sanitizer with it.
const nvidia = "/dev/nvidia"

var drivers = []string{nvidia, "pipe:", "socket:", "anon_inode:[eventfd]", "anon_inode:[eventpoll]",
	"anon_inode:[timerfd]"}

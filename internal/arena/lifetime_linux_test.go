package arena_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() { actors["late"] = actLate }

// actLate uses a slice when its block is closed, in the way that its argument says. It says the
// lines that the report must name.
func actLate(_ *arena.Domain, args []string) error {
	d, err := arena.New(arena.Options{Budget: 16 << 20})
	if err != nil {
		return err
	}
	h, err := d.Alloc(100)
	say("lifetime_linux_test.go:%d", line()-1)
	if err != nil {
		return err
	}
	p, err := d.Bytes(h)
	if err != nil {
		return err
	}
	p[0] = 1
	switch args[0] {
	case "release":
		err = d.Release(h)
		say("lifetime_linux_test.go:%d", line()-1)
	case "send":
		r, _, _, rerr := d.NewRing(arena.RingOptions{Capacity: 1})
		if rerr != nil {
			return rerr
		}
		err = r.TryPut(nil, []arena.Handle{h}, true)
		say("lifetime_linux_test.go:%d", line()-1)
	case "leave":
		err = d.Close()
		say("lifetime_linux_test.go:%d", line()-1)
	}
	if err != nil {
		return err
	}
	say("lifetime_linux_test.go:%d", line()+1)
	p[99] = 1
	say("nothing happened")
	return nil
}

func line() int {
	_, _, n, _ := runtime.Caller(1)
	return n
}

// late runs the actor and returns what it said and wrote.
func late(t *testing.T, debug, way string) (lines []string, errs string, failed error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", way)
	cmd.Env = append(os.Environ(), actorEnv+"=late", "SHOAL_DEBUG="+debug, "GORACE=atexit_sleep_ms=0")
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	failed = cmd.Run()
	return strings.Fields(strings.ReplaceAll(out.String(), "\n", " ")), err.String(), failed
}

func TestLifetime_SliceThatIsUsedTooLateIsTracedToItsBlock(t *testing.T) {
	for _, way := range []string{"release", "send", "leave"} {
		lines, errs, err := late(t, "lifetime", way)
		if err == nil || len(lines) != 3 {
			t.Fatalf("%s: %v, said %q\n%s", way, err, lines, errs)
		}
		want := `(?s)^shoal: slice of shared memory used after its block was closed\nblock \d+, 4096 bytes, allocated or received here by\n.*` +
			lines[0] + `\n.*and closed by\n.*` + lines[1] + `\n.*fault below.*unexpected fault address.*` +
			lines[2] + ` `
		if !regexp.MustCompile(want).MatchString(errs) {
			t.Errorf("%s: want %s, have\n%s", way, want, errs)
		}
	}
}

func TestLifetime_WithoutDebuggingNothingIsNoticed(t *testing.T) {
	if lines, errs, err := late(t, "", "release"); err != nil || len(lines) != 5 {
		t.Errorf("%v, said %q\n%s", err, lines, errs)
	}
}

func TestLifetime_UnknownWordInTheEnvironmentIsAnError(t *testing.T) {
	if _, errs, err := late(t, "liftime", "release"); err == nil ||
		!strings.Contains(errs, "SHOAL_DEBUG=liftime: unknown value, want lifetime") {
		t.Errorf("%v\n%s", err, errs)
	}
}

// A right program is none the worse for being watched: blocks are used again at once, by this
// process and by others, and what the protocol does with them is not the user's access.
func TestLifetime_RightProgramIsUnharmedWhenItIsWatched(t *testing.T) {
	t.Setenv("SHOAL_DEBUG", "lifetime")
	d := newDomain(t, 16<<20)
	used := map[*byte]int{}
	for i := range 500 {
		h := alloc(t, d, 1+i%3*5000, fmt.Sprint("mark ", i))
		wantMark(t, d, h, fmt.Sprint("mark ", i))
		testutil.NoError(t, d.Retain(h))
		testutil.NoError(t, d.Release(h))
		p, err := d.Bytes(h)
		testutil.NoError(t, err)
		p[len(p)-1]++ // still held once
		used[&p[0]]++
		testutil.NoError(t, d.Release(h))
	}
	if len(used) > 50 {
		t.Errorf("%d different blocks: they are not used again", len(used))
	}
	wantRest(t, d, 0)
	t.Run("processes", TestProcess_ExchangesBlocks)
	t.Run("storm", TestDeath_KillStorm)
	t.Run("messages", TestRing_EveryMessageArrivesExactlyOnce)
	t.Run("spilled", TestRing_TakesMessagesOfAllSizes)
	t.Run("rings", TestRing_TravelsInAMessage)
	t.Run("orphans", TestRing_MessageOutlivesItsSendersDomain)
}

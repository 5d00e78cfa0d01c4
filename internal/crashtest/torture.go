//go:build shoalcrash

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The storms of a torture have so many deaths each, over a domain of their own.
const tortureRound = 400

// tortureMain is `make torture`: storm after storm, and after each garbage in other domains, until
// the time is over. They take turns since the descriptors of this process are counted. It prints
// what all came to as one line of JSON.
func tortureMain(arg string) error {
	fs := flag.NewFlagSet("torture", flag.ContinueOnError)
	most := fs.Duration("time", 15*time.Minute, "how long it goes on")
	seed := fs.Uint64("seed", 1, "of the random choices")
	scribbles := fs.String("scribbles", "", "the compiled tests of internal/shm, for garbage in the control segment")
	if err := fs.Parse(strings.Fields(arg)); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE)
	t := &torture{end: time.Now().Add(*most)}
	before := sharedFiles()
	var failed error
	for n := *seed; time.Now().Before(t.end); n++ {
		s, took, err := newStorm(n, tortureRound)
		if err != nil {
			failed = errors.Join(failed, err)
			break
		}
		s.report = os.Stderr
		if err := s.judge(tortureRound, took); err != nil {
			failed = errors.Join(failed, fmt.Errorf("storm of seed %d: %w", n, err))
		}
		t.sum.add(s.seen)
		failed = errors.Join(failed, s.d.Close(), t.scribble(*scribbles, n))
		fmt.Fprintf(os.Stderr, "%v left: %d kills, %d stops, %d births\n", time.Until(t.end).Round(time.Second),
			t.sum.Kills, t.sum.Stops, t.sum.Early)
	}
	t.sum.Files += max(0, len(sharedFiles())-len(before))
	line, err := json.Marshal(t.sum)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", line)
	if failed == nil && t.sum.wrong() > 0 {
		failed = errors.New("what should be 0 is not")
	}
	return failed
}

// A torture is the sum of all that was done to processes.
type torture struct {
	end time.Time
	sum tally
}

// scribble has another process write garbage into some domains.
func (t *torture) scribble(tests string, seed uint64) (failed error) {
	if tests == "" {
		return nil
	}
	cmd := exec.Command(tests, "-test.run", "^TestScribble_NobodyCrashesOrHangs$", "-test.timeout", "30m",
		"-scribble.trials", "40", "-scribble.seed", fmt.Sprint(seed), "-scribble.json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		failed = fmt.Errorf("garbage of seed %d: %w: %s", seed, err, out)
	}
	var one struct{ Scribbles, Crashes, Hangs int }
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		if strings.HasPrefix(in.Text(), "{") {
			failed = errors.Join(failed, json.Unmarshal(in.Bytes(), &one))
		}
	}
	if one.Scribbles == 0 {
		failed = errors.Join(failed, fmt.Errorf("garbage of seed %d: nothing was written: %s", seed, out))
	}
	t.sum.add(tally{Scribbles: one.Scribbles, Crashes: one.Crashes, Hangs: one.Hangs})
	return failed
}

// add adds what another tally has.
func (t *tally) add(o tally) {
	t.Kills += o.Kills
	t.Stops += o.Stops
	t.Early += o.Early
	t.Scribbles += o.Scribbles
	t.Hangs += o.Hangs
	t.Crashes += o.Crashes
	t.Lost += o.Lost
	t.Twice += o.Twice
	t.Blocks += o.Blocks
	t.Bytes += o.Bytes
	t.FDs += o.FDs
	t.Files += o.Files
}

// wrong adds up what should be 0.
func (t *tally) wrong() int {
	return t.Hangs + t.Crashes + t.Lost + t.Twice + t.Blocks + t.Bytes + t.FDs + t.Files
}

// sharedFiles are the names of Shoal's in memory that outlives processes.
func sharedFiles() []string {
	names, _ := filepath.Glob("/dev/shm/*shoal*")
	return names
}

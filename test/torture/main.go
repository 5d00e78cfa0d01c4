//go:build linux

// Command torture kills, stops and starts processes of complete programs and compares their actions
// with a ledger outside of shared memory.
//
//	torture [-time 15m] [-seed 1] [-storm NAME] [-deaths N] [-rings PROGRAM] [-garbage PROGRAM]
//
// It prints a JSON object with the counts of kills and violations, and exits with a nonzero status
// if there are violations. Storms on rings are run by test/crashtest, and corruption of the control
// segment by the tests of internal/arena; "make torture" builds and runs all three. It runs on
// Linux only.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/shoal-mp/shoal"
)

func main() { shoal.Main(run) }

// run runs storms until the time is over, each in its own process, so that leaks are detected.
// It prints the total as one line of JSON. It returns an error if a program fails or a storm
// counts a violation. With -storm it runs that storm in this process instead.
func run(ctx context.Context) error {
	t := &torture{end: time.Now()}
	one := flag.String("storm", "", "have this one only: "+strings.Join(stormNames(), ", "))
	deaths := flag.Int("deaths", 0, "of a storm; 0 stands for its usual number")
	flag.StringVar(&t.rings, "rings", "", "the program test/crashtest, for storms of rings")
	flag.StringVar(&t.garbage, "garbage", "",
		"the compiled tests of internal/arena, for garbage in the control segment")
	flag.StringVar(&t.histories, "histories", "", "the program test/histories, for histories of operations")
	seed := flag.Uint64("seed", 1, "of the random choices")
	most := flag.Duration("time", 15*time.Minute, "how long it goes on")
	flag.Parse()
	if *one != "" {
		return runStorm(ctx, *one, *deaths, *seed)
	}
	t.end = t.end.Add(*most)
	before := filesLeft()
	err := t.runStorms(ctx, *seed)
	t.sum.Files = max(t.sum.Files, len(filesLeft())-len(before)) // storms have counted their own
	line, failed := json.Marshal(t.sum)
	fmt.Printf("%s\n", line)
	if err = errors.Join(err, failed); err == nil && t.sum.wrong() > 0 {
		err = errors.New("what should be 0 is not")
	}
	return err
}

// A torture is the state of a run: its limits, the paths of other test programs, and the total.
type torture struct {
	end            time.Time
	rings, garbage string
	histories      string
	sum            tally
}

// runStorms runs the storms in turn until the time is over, each followed by a storm on rings and a
// test with garbage. Each kind runs at least once. It returns the errors of the programs.
func (t *torture) runStorms(ctx context.Context, seed uint64) (failed error) {
	long := time.Until(t.end) > 10*time.Minute
	withPython := interpreter() != ""
	if !withPython {
		fmt.Fprintf(os.Stderr, "no storm over Python: %v\n", errNoPyTorch)
	}
	for n := 0; ctx.Err() == nil && (n < len(storms) || time.Now().Before(t.end)); n++ {
		s := storms[n%len(storms)]
		at := fmt.Sprint(seed + uint64(n))
		if s.full && (!long || n >= len(storms)) || s.name == "python" && !withPython {
			continue
		}
		failed = errors.Join(failed, t.runProgram(ctx, "/proc/self/exe", "-storm", s.name, "-seed", at))
		if t.rings != "" {
			failed = errors.Join(failed, t.runProgram(ctx, t.rings, "storm", "-kills", "400", "-seed", at))
		}
		if t.histories != "" {
			failed = errors.Join(failed,
				t.runProgram(ctx, t.histories, "-sessions", "6", "-kills", "2", "-seed", at, "-out", os.TempDir()))
		}
		if t.garbage != "" {
			failed = errors.Join(failed, t.runProgram(ctx, t.garbage, "-test.run", "^TestScribble_NobodyCrashesOrHangs$",
				"-test.timeout", "30m", "-scribble.trials", "40", "-scribble.seed", at, "-scribble.json"))
		}
		fmt.Fprintf(os.Stderr, "%v left: %d kills, %d stops, %d births, %d words of garbage\n",
			time.Until(t.end).Round(time.Second), t.sum.Kills, t.sum.Stops, t.sum.Early, t.sum.Scribbles)
	}
	return errors.Join(failed, ctx.Err())
}

// runProgram runs a program that prints a tally as a line of JSON and adds it to the total. It
// returns an error if the program fails, or if the tally shows that nothing was done.
func (t *torture) runProgram(ctx context.Context, program string, args ...string) (failed error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	what := strings.Join(append([]string{filepath.Base(program)}, args...), " ")
	if err != nil {
		failed = fmt.Errorf("%s: %w", what, err)
	}
	var found tally
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		if strings.HasPrefix(in.Text(), "{") {
			failed = errors.Join(failed, json.Unmarshal(in.Bytes(), &found))
		}
	}
	if found.Kills+found.Early+found.Scribbles == 0 {
		failed = errors.Join(failed, fmt.Errorf("%s: nothing was done: %s", what, out))
	}
	t.sum.add(found)
	return failed
}

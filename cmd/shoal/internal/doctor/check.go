package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/audit"
)

// ErrProcess should be wrapped by errors about a process that cannot be checked.
var ErrProcess = errors.New("cannot check the process")

// ErrViolations means that a check has found violations.
var ErrViolations = errors.New("the shared memory is corrupt")

// checkTime bounds a check, however much garbage the memory has.
const checkTime = 30 * time.Second

// Check audits the shared memory of process pid while the process runs, for at most 30 seconds,
// and writes a summary and the violations to out, as text or as JSON. The error wraps
// [ErrViolations] if there are any, and [ErrProcess] if there is no such process, if it is not a
// Shoal program, or if it belongs to another user.
func Check(ctx context.Context, out io.Writer, pid int, asJSON bool) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	reports, err := arena.Check(ctx, pid)
	if err != nil {
		return explainCheck(pid, err)
	}
	broken := 0
	for _, r := range reports {
		broken += len(r.Violations)
	}
	if asJSON {
		err = json.NewEncoder(out).Encode(reports)
	} else {
		err = printChecks(out, reports)
	}
	if err == nil && broken > 0 {
		err = fmt.Errorf("%w: %s in process %d", ErrViolations, words.Count(broken, "violation"), pid)
	}
	return err
}

// explainCheck returns the error for a process that could not be checked. err is the error of
// [arena.Check].
func explainCheck(pid int, err error) error {
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return fmt.Errorf("%w: no process %d", ErrProcess, pid)
	case errors.Is(err, arena.ErrUser):
		return fmt.Errorf("%w: process %d belongs to another user, or may not be read; run shoal as its user",
			ErrProcess, pid)
	case errors.Is(err, arena.ErrVersion), errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("%w: process %d: %w", ErrProcess, pid, err)
	case errors.Is(err, arena.ErrNoDomain):
		return fmt.Errorf("%w: process %d is not a Shoal program of this version, or has not used shared memory",
			ErrProcess, pid)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no result within %v: %w", checkTime, err)
	}
	return err
}

// printChecks writes the reports as text.
func printChecks(out io.Writer, reports []audit.Report) error {
	for i, r := range reports {
		if len(reports) > 1 {
			fmt.Fprintf(out, "domain %d of %d\n", i+1, len(reports))
		}
		if err := printCheck(out, r); err != nil {
			return err
		}
	}
	return nil
}

// printCheck writes one report as text: a line with the result and the counts, and three lines for
// each violation.
func printCheck(out io.Writer, r audit.Report) error {
	result := "sound"
	if n := len(r.Violations); n > 0 {
		result = words.Count(n, "violation")
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s, %s, %s and %s checked in %v, in %d %s\n", result,
		words.Count(r.Participants, "participant"), words.Count(r.Blocks, "block"), words.Count(r.Rings, "ring"),
		words.Count(r.Slots, "slot"), words.Count(r.Locks, "lock"), r.Took.Round(100*time.Microsecond), r.Passes,
		map[bool]string{true: "pass", false: "passes"}[r.Passes == 1])
	if r.Undecided > 0 {
		fmt.Fprintf(out, "undecided: %s, because a process is stopped, or dead and not reaped; check again when "+
			"it is not\n",
			words.Count(r.Undecided, "finding"))
	}
	if len(r.Violations) == 0 {
		return err
	}
	fmt.Fprintln(out, "the program runs on meanwhile, so a violation is listed only if each pass has found it "+
		"with the same words:")
	for _, v := range r.Violations {
		_, err = words.Fprintf(out, "  %s: %s\n    want: %s (docs/memory.md, %q)\n    remedy: %s\n", v.Part, v.Found,
			v.Invariant, v.Section, v.Remedy)
	}
	if r.More > 0 {
		_, err = fmt.Fprintf(out, "  and about %d more\n", r.More)
	}
	return err
}

package doctor_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/doctor"
	"github.com/shoal-mp/shoal/internal/arena/audit"
	"github.com/shoal-mp/shoal/ipc"
)

func TestCheck_OfThisProcess(t *testing.T) {
	q, err := ipc.NewQueue[int](4)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var out strings.Builder
	if err := doctor.Check(t.Context(), &out, os.Getpid(), false); err != nil {
		t.Error(err)
	}
	want := regexp.MustCompile(
		`(?m)^sound: \d+ participants?, \d+ blocks?, \d+ rings?, \d+ slots?, \d+ locks? checked in [\d.]+.s, in \d+ pass`)
	if !want.MatchString(strings.ReplaceAll(out.String(), " and ", ", ")) {
		t.Errorf("the report is %q", out.String())
	}
}

func TestCheck_RefusesOtherPrograms(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for pid, want := range map[int]string{cmd.Process.Pid: "not a Shoal program", 1 << 22: "no process"} {
		var out strings.Builder
		err := doctor.Check(t.Context(), &out, pid, false)
		if !errors.Is(err, doctor.ErrProcess) || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("process %d: %v, want %q", pid, err, want)
		}
	}
}

func TestCheck_PrintsViolations(t *testing.T) {
	var out strings.Builder
	err := doctor.PrintChecks(&out, []audit.Report{{Passes: 9, Undecided: 1, Violations: []audit.Violation{{
		Part: "ring 5, slot 3", Found: "slot word 0x1", Invariant: "a rule", Section: "Tickets", Remedy: "a remedy"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 violation: 0 participants", "in 9 passes", "undecided: 1 finding",
		"with the same words", "ring 5, slot 3: slot word 0x1\n    want: a rule (docs/memory.md, \"Tickets\")\n   " +
			" remedy: a remedy\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

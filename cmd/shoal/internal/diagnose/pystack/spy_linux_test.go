package pystack_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// output is part of the output of py-spy 0.4.3.
const output = `[{"pid":7,"thread_id":140,"thread_name":"MainThread","os_thread_id":7,"active":false,"owns_gil":false,
"frames":[{"name":"inner","filename":"/tmp/program.py","module":null,"short_filename":"program.py","line":4,
"locals":null,"is_entry":false},{"name":"<module>","filename":"/tmp/program.py","module":null,
"short_filename":"program.py","line":11,"locals":null,"is_entry":true}],"process_info":null}]`

// putSpy puts a program named py-spy on the PATH.
func putSpy(t *testing.T, script string) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "py-spy"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestSpy_ParsesStacks(t *testing.T) {
	putSpy(t, "[ \"$*\" = 'dump --nonblocking --json --pid 7' ] && cat <<'EOF'\n"+output+"\nEOF\n")
	got, err := pystack.Spy(context.Background(), 7)
	want := []pystack.Stack{{TID: 7, Frames: []pystack.Frame{{Function: "inner", File: "/tmp/program.py", Line: 4},
		{Function: "<module>", File: "/tmp/program.py", Line: 11}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestSpy_KnowsTheMainThreadByItsName(t *testing.T) {
	putSpy(t, "cat <<'EOF'\n"+strings.Replace(output, `"os_thread_id":7`, `"os_thread_id":null`, 1)+"\nEOF\n")
	got, err := pystack.Spy(context.Background(), 7)
	if err != nil || len(got) != 1 || got[0].TID != 7 {
		t.Errorf("%v, %v; want the stack of thread 7", got, err)
	}
}

func TestSpy_ReturnsItsError(t *testing.T) {
	putSpy(t, "echo 'Error: Permission Denied' >&2; exit 1\n")
	_, err := pystack.Spy(context.Background(), 7)
	if err == nil || !strings.Contains(err.Error(), "Permission Denied") {
		t.Errorf("error %v, want the one of py-spy", err)
	}
}

func TestSpy_AgreesWithRead(t *testing.T) {
	for _, python := range interpreters(t) {
		t.Run(python, func(t *testing.T) {
			supported(t, python)
			p := run(t, python, program)
			own := readInner(t, p)
			spied, err := pystack.Spy(context.Background(), p.PID)
			if err != nil {
				t.Skip(err)
			}
			if got, want := fmt.Sprint(sorted(spied, p.PID)), fmt.Sprint(sorted(own, p.PID)); got != want {
				t.Errorf("py-spy %s, want %s", got, want)
			}
		})
	}
}

// sorted returns the stack of the main thread, and the innermost two frames of the other one.
func sorted(stacks []pystack.Stack, pid int) (list [2][]pystack.Frame) {
	for _, s := range stacks {
		if s.TID == pid {
			list[0] = s.Frames
		} else {
			list[1] = s.Frames[:2]
		}
	}
	return list
}

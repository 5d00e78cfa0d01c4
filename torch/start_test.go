package torch

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// TestChild_ReadsItsParentToTheEnd lets Python start processes that end at once, with longer
// pickles than a pipe holds. A program that ends before it has read all would hang its parent.
func TestChild_ReadsItsParentToTheEnd(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		cmd := exec.CommandContext(testContext(t), py.path, "testdata/early.py", os.Args[0])
		cmd.Env, cmd.Stderr = pythonEnv(), io.Discard
		out, err := cmd.Output()
		if want := "fails 1\nfails 1\nnobodys 3\nnobodys 1\n"; string(out) != want || err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

package pool_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Workers may be of another program, which does with a call what its function of that name does.
func TestOptions_WorkersOfAnotherExecutable(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	if out, err := exec.CommandContext(testutil.Context(t), "go", "build", "-o", other,
		"./testdata/other").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart} {
		t.Run(m.String(), func(t *testing.T) {
			p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m, Executable: other}})
			if got := testutil.Value(square.Apply(testutil.Context(t), p, 3))(t); got != -9 {
				t.Errorf("it says %d", got)
			}
			if _, err := oddOnly.Apply(testutil.Context(t), p, 3); !errors.Is(err, shoal.ErrNotRegistered) {
				t.Errorf("what it does not have: %v", err)
			}
		})
	}
}

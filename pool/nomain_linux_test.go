package pool_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/test/testutil"
)

func TestNew_WithoutMainIsAnError(t *testing.T) {
	cmd := exec.CommandContext(testutil.Context(t), "/proc/self/exe")
	cmd.Env = append(os.Environ(), noMainKey+"=1")
	out := testutil.Value(cmd.CombinedOutput())(t)
	if want := "true true pool: shoal: call shoal.Main first in main"; !strings.HasPrefix(string(out), want) {
		t.Errorf("got %q, want %q", out, want)
	}
}

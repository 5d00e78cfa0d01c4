package tensor_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

const (
	tracedEnv      = "SHOAL_TENSOR_TEST_TRACED"
	tracedMessages = 10_000
	tracedMark     = "getpgid(-8" // what nobody else asks for
)

// A message takes no system call where nobody has to be woken, whatever the tensor's size: its
// thread makes far fewer than there are messages, and those are the scheduler's and the garbage
// collector's.
func TestTensor_IsSentWithoutASystemCall(t *testing.T) {
	if testing.Short() {
		t.Skip("an emulator makes calls of its own")
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	file := filepath.Join(t.TempDir(), "calls")
	cmd := exec.CommandContext(testutil.Context(t), strace, "-f", "-qq", "-o", file, os.Args[0],
		"-test.run=^TestTensor_IsSentInAllSizes$", "-test.count=1")
	cmd.Env = append(os.Environ(), tracedEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(strings.ToLower(string(out)), "ptrace") {
			t.Skipf("nothing can be traced here: %s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	testutil.NoError(t, err)
	thread, marks := "", 0
	calls := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		by, call, _ := strings.Cut(line, " ")
		call = strings.TrimSpace(call)
		switch {
		case strings.HasPrefix(call, tracedMark):
			thread = by
			marks++
		case marks == 1 && by == thread && !strings.HasPrefix(call, "---") && !strings.HasPrefix(call, "<..."):
			name, _, _ := strings.Cut(call, "(")
			calls[name]++
		}
	}
	sum := 0
	for _, n := range calls {
		sum += n
	}
	t.Logf("%d system calls for %d messages: %v", sum, tracedMessages, calls)
	if marks != 2 || 4*sum > tracedMessages {
		t.Errorf("%d system calls for %d messages between %d marks: %v", sum, tracedMessages, marks, calls)
	}
}

// TestTensor_IsSentInAllSizes is what is traced.
func TestTensor_IsSentInAllSizes(t *testing.T) {
	if os.Getenv(tracedEnv) == "" {
		t.Skip("only for TestTensor_IsSentWithoutASystemCall")
	}
	domain(t, 64<<20)
	ctx := testutil.Context(t)
	q, err := ipc.NewQueue[*tensor.Tensor](1)
	testutil.NoError(t, err)
	var xs []*tensor.Tensor
	for size := 4; size <= 16<<20; size <<= 2 {
		x, err := tensor.NewShared(tensor.Uint8, size)
		testutil.NoError(t, err)
		xs = append(xs, x)
	}
	runtime.LockOSThread()
	syscall.Getpgid(-8)
	for i := range tracedMessages {
		testutil.NoError(t, q.Put(ctx, xs[i%len(xs)]))
		y, err := q.Get(ctx)
		testutil.NoError(t, err)
		testutil.NoError(t, y.Close())
	}
	syscall.Getpgid(-8)
	runtime.UnlockOSThread()
	for _, x := range xs {
		err = errors.Join(err, x.Close())
	}
	testutil.NoError(t, errors.Join(err, q.Close()))
}

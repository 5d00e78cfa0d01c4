package sys_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
	"golang.org/x/sys/unix"
)

func TestPSSGrowsWithWhatIsTouched(t *testing.T) {
	const size = 64 * mib
	mem := mapped(t, memfile(t, size), size)
	before := testutil.Value(sys.PSS(os.Getpid()))(t)
	for i := 0; i < size; i += 4096 {
		mem[i] = 1
	}
	if grown := testutil.Value(sys.PSS(os.Getpid()))(t) - before; before <= 0 || grown < size/2 {
		t.Errorf("PSS was %d and grew by %d after touching %d bytes", before, grown, size)
	}
}

func TestContextSwitchesCountWaits(t *testing.T) {
	before := testutil.Value(sys.ContextSwitches(os.Getpid()))(t).Voluntary
	var ts unix.Timespec
	for range 20 {
		ts.Nsec = 1000 // each is one wait of this thread in the kernel
		unix.Nanosleep(&ts, nil)
	}
	if n := testutil.Value(sys.ContextSwitches(os.Getpid()))(t).Voluntary - before; n < 10 {
		t.Errorf("%d voluntary switches in 20 sleeps", n)
	}
}

func TestOpenFilesCountsExactly(t *testing.T) {
	before := openFiles(t)
	f := memfile(t, 1)
	if n := openFiles(t); n != before+1 {
		t.Errorf("%d open files, then %d after opening one", before, n)
	}
	f.Close()
	if n := openFiles(t); n != before {
		t.Errorf("%d open files, then %d after closing it again", before, n)
	}
}

func TestResourceLimitsAreReadNow(t *testing.T) {
	for name, l := range map[string]struct {
		resource int
		read     func() int64
	}{
		"RLIMIT_FSIZE": {unix.RLIMIT_FSIZE, sys.FileSizeLimit},
		"RLIMIT_AS":    {unix.RLIMIT_AS, sys.AddressSpaceLimit},
	} {
		var old unix.Rlimit
		testutil.NoError(t, unix.Getrlimit(l.resource, &old))
		lower := old
		lower.Cur = min(old.Max, 1<<45)
		testutil.NoError(t, unix.Setrlimit(l.resource, &lower))
		if got := l.read(); got != int64(lower.Cur) {
			t.Errorf("%s: %d, want %d", name, got, lower.Cur)
		}
		testutil.NoError(t, unix.Setrlimit(l.resource, &old))
		if got := l.read(); got != max(int64(old.Cur), -1) {
			t.Errorf("%s: %d, want %d", name, got, int64(old.Cur))
		}
	}
}

func init() {
	roles["kill self"] = func() error {
		defer fmt.Println("a deferred call ran")
		sys.KillSelf()
		return nil
	}
	roles["stop self"] = func() error {
		runtime.LockOSThread() // of the main thread, which is not the one that stops
		failed := make(chan error)
		go func() {
			for n := byte(1); n <= stops; n++ {
				if err := sys.StopSelf(); err != nil {
					failed <- err
				}
				os.Stdout.Write([]byte{n})
			}
			failed <- nil
		}()
		return <-failed
	}
	roles["adopt"] = func() error {
		if err := sys.SetSubreaper(); err != nil {
			return err
		}
		out, err := command("make an orphan").Output() // ends when the orphan has closed the pipe
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("%d\n", os.Getpid()); string(out) != want {
			return fmt.Errorf("the orphan's parent is %q, want %q", out, want)
		}
		fmt.Println("ok")
		return nil
	}
	roles["make an orphan"] = func() error {
		cmd := command("orphan", strconv.Itoa(os.Getpid()))
		cmd.Stdout = os.Stdout
		return cmd.Start()
	}
	roles["orphan"] = func() error {
		maker, err := strconv.Atoi(os.Args[1])
		if err != nil {
			return err
		}
		p, err := sys.OpenPidfd(maker)
		if err == nil {
			err = p.Wait(context.Background())
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended already
			return err
		}
		fmt.Println(os.Getppid())
		return nil
	}
}

func TestKillSelfIsARealKill(t *testing.T) {
	out, err := command("kill self").Output()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || len(out) != 0 {
		t.Fatalf("%v, output %q", err, out)
	}
	if ws := exit.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
		t.Errorf("it ended by %v", exit)
	}
}

const stops = 100

// TestStopSelfReturnsNoEarlier has a process stop again and again, and say so when it goes on.
func TestStopSelfReturnsNoEarlier(t *testing.T) {
	cmd := command("stop self")
	out := testutil.Value(cmd.StdoutPipe())(t)
	testutil.NoError(t, cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for n := range byte(stops) {
		var ws syscall.WaitStatus
		err := uninterrupted(func() error {
			_, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil)
			return err
		})
		if err != nil || !ws.Stopped() {
			t.Fatalf("after %d stops: %v, status %#x", n, err, ws)
		}
		fds, ready := []unix.PollFd{{Fd: int32(out.(*os.File).Fd()), Events: unix.POLLIN}}, 0
		err = uninterrupted(func() (err error) { ready, err = unix.Poll(fds, 0); return err })
		if err != nil || ready != 0 {
			t.Fatalf("it stands still for the %dth time, and has gone on before: %v", n+1, err)
		}
		testutil.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		var said [1]byte
		if _, err := io.ReadFull(out, said[:]); err != nil || said[0] != n+1 {
			t.Fatalf("it says %d, want %d: %v", said[0], n+1, err)
		}
	}
}

// uninterrupted calls again what a signal has interrupted: Go's scheduler sends itself some.
func uninterrupted(call func() error) (err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		err = call()
	}
	return err
}

func TestSubreaperAdoptsOrphans(t *testing.T) {
	if out := finish(t, command("adopt")); out != "ok" {
		t.Error(out)
	}
}

func TestThreadNameIsSeen(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	for name, want := range map[string]string{"worker 7": "worker 7", "a name of many bytes": "a name of many "} {
		testutil.NoError(t, sys.SetThreadName(name))
		if got := string(testutil.Value(os.ReadFile("/proc/thread-self/comm"))(t)); got != want+"\n" {
			t.Errorf("the thread is called %q, want %q", got, want)
		}
	}
}

func TestCheckFileSize(t *testing.T) {
	var old unix.Rlimit
	testutil.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	lower := old
	lower.Cur = min(old.Max, 1<<45)
	testutil.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &lower))
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &old)
	testutil.NoError(t, sys.CheckFileSize(int64(lower.Cur)))
	err := sys.CheckFileSize(int64(lower.Cur) + 1)
	testutil.ErrorIs(t, err, unix.EFBIG)
	testutil.ErrorContains(t, err, "ulimit -f")
}

package sys_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/shoal-mp/shoal/internal/sys"
)

// The orphan has a lifeline at 3 and a socket at 4. What it is doing when its ancestor dies is its
// argument.
func init() { roles["bereaved"] = bereaved }

const orphanCode = 44

var busyLoop int // what the loop writes, so that it is not optimised away

func bereaved() error {
	if n := runtime.GOMAXPROCS(0); n != 1 {
		return fmt.Errorf("GOMAXPROCS is %d, and shall be 1", n)
	}
	grace := 10 * time.Millisecond
	if os.Args[1] == "socket" {
		grace = patience // there must be time to say so
	}
	o, err := sys.NewOrphanage([]int{3, 3, 3, 3}, 4, grace, orphanCode)
	if err != nil {
		return err
	}
	watching := make(chan int)
	go func() {
		runtime.LockOSThread()
		watching <- unix.Gettid()
		o.Watch()
	}()
	watcher := <-watching
	switch os.Args[1] {
	case "signals":
		return interrupted(watcher)
	case "socket": // the reading side is shut down first
		n, err := syscall.Read(4, make([]byte, 1))
		fmt.Println("read", n, err)
		select {}
	case "loop":
		fmt.Println("busy")
		for n := 0; ; n++ {
			busyLoop = n
		}
	}
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	fmt.Println("busy")
	for { // the scheduler is not told of a raw call: the only P is gone for an hour, as with assembly
		syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(ep), 0, 1, 3_600_000, 0, 0)
	}
}

// interrupted has the watching thread interrupted by signals, after the memory of everything that
// was garbage has been used again. It returns, and does not end as an orphan does.
func interrupted(watcher int) error {
	runtime.GC()
	runtime.GC()
	const closed = 1 << 20 // no descriptor
	reused := make([][]int64, 1<<16)
	for i := range reused {
		reused[i] = []int64{closed, closed, closed, closed} // as long as what the kernel looks at
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	for range 100 {
		if err := unix.Tgkill(os.Getpid(), watcher, unix.SIGINT); err != nil {
			return err
		}
		<-signals
	}
	if n, _, err := unix.Recvfrom(4, make([]byte, 1), unix.MSG_DONTWAIT); err != unix.EAGAIN {
		return fmt.Errorf("the socket has been shut down: %d, %v", n, err)
	}
	for i, one := range reused {
		if !slices.Equal(one, []int64{closed, closed, closed, closed}) {
			return fmt.Errorf("the kernel has written to %d of what is not its: %x", i, one)
		}
	}
	return nil
}

// startOrphan returns the process, and both ends of what connects it.
func startOrphan(t *testing.T, doing string) (cmd *exec.Cmd, out *os.File, lifeline *os.File) {
	t.Helper()
	r, lifeline, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd = command("bereaved", doing)
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	cmd.ExtraFiles = []*os.File{r, theirs}
	cmd.Stdout = stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{r, theirs, stdout} {
		f.Close()
	}
	t.Cleanup(func() { cmd.Process.Kill(); ours.Close(); out.Close(); lifeline.Close() })
	return cmd, out, lifeline
}

func TestOrphanEndsWhateverItIsDoing(t *testing.T) {
	for _, doing := range []string{"loop", "raw call"} {
		cmd, out, lifeline := startOrphan(t, doing)
		if _, err := out.Read(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		lifeline.Close()
		watchdog := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		cmd.Wait()
		watchdog.Stop()
		if code := cmd.ProcessState.ExitCode(); code != orphanCode {
			t.Errorf("%s: ended with %v, want status %d", doing, cmd.ProcessState, orphanCode)
		}
	}
}

func TestOrphanIsToldOnItsSocket(t *testing.T) {
	cmd, out, lifeline := startOrphan(t, "socket")
	lifeline.Close()
	watchdog := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer watchdog.Stop()
	b := make([]byte, 64)
	n, err := out.Read(b)
	if err != nil || string(b[:n]) != "read 0 <nil>\n" {
		t.Errorf("got %q, %v", b[:n], err)
	}
	cmd.Process.Kill()
	cmd.Wait()
}

func TestASignalOrphansNobody(t *testing.T) {
	cmd, out, _ := startOrphan(t, "signals")
	watchdog := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer watchdog.Stop()
	said, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v: %s", err, said)
	}
}

func TestOrphanageNeedsALifeline(t *testing.T) {
	if _, err := sys.NewOrphanage(nil, 0, 0, 0); err == nil {
		t.Error("nothing to watch is no error")
	}
}

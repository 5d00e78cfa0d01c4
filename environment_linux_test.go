package shoal_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
)

// Programs of these tests run in environments that lack something. A household is a program that
// uses what most programs share: it works there, or its error says what to do. It hangs nowhere,
// and leaves nothing behind.

var (
	giveOne = shoal.Register("giveOne", func(ctx context.Context, rank int, q *ipc.Queue[*tensor.Tensor]) error {
		x, err := tensor.NewShared(tensor.Float32, 1000)
		if err != nil {
			return err
		}
		return q.Put(ctx, x.Fill(float64(rank+1)))
	})
	holdIt = shoal.Register("holdIt", func(ctx context.Context, _ int, m *ipc.Mutex) error {
		if err := m.Lock(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	callIt = shoal.Register("callIt", func(ctx context.Context, _ int, addr string) error {
		c, err := ipc.Dial[int](ctx, addr, []byte("key"))
		if err != nil {
			return err
		}
		return errors.Join(c.Send(ctx, 5), c.Close())
	})
)

func household() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(messages(ctx), deathOfAHolder(ctx), meeting(ctx))
}

// messages gets tensors of two processes.
func messages(ctx context.Context) error {
	q, err := ipc.NewQueue[*tensor.Tensor](4)
	if err != nil {
		return err
	}
	defer q.Close()
	if err := giveOne.Spawn(ctx, 2, q); err != nil {
		return err
	}
	sum := 0.0
	for range 2 {
		x, err := q.Get(ctx)
		if err != nil {
			return err
		}
		sum += x.Sum()
		x.Close()
	}
	if sum != 3000 {
		return fmt.Errorf("the tensors add up to %v", sum)
	}
	return nil
}

// deathOfAHolder gets the lock that a killed process held.
func deathOfAHolder(ctx context.Context) error {
	m, err := ipc.NewMutex()
	if err != nil {
		return err
	}
	defer m.Close()
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	p := holdIt.Go(g, m)
	for !m.Locked() {
		select {
		case <-p.Done():
			return g.Wait()
		case <-time.After(time.Millisecond):
		}
	}
	if err := p.Kill(); err != nil {
		return err
	}
	if err := m.Lock(ctx); !errors.Is(err, ipc.ErrOwnerDied) {
		return fmt.Errorf("the lock of a killed process: %w", err)
	}
	g.Wait() // it says that the process was killed
	return m.Unlock()
}

// meeting has a process call that knows an address.
func meeting(ctx context.Context) error {
	l, err := ipc.Listen[int]("@shoal-test-"+rand.Text(), []byte("key"))
	if err != nil {
		return err
	}
	defer l.Close()
	g, err := callIt.Start(ctx, 1, l.Addr(), shoal.Options{})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx) // the process may end before it calls
	defer cancel()
	go func() {
		err := g.Wait()
		if ended <- err; err != nil {
			cancel()
		}
	}()
	c, err := l.Accept(ctx)
	if err != nil {
		return errors.Join(<-ended, err)
	}
	defer c.Close()
	if n, err := c.Recv(ctx); n != 5 || err != nil {
		return fmt.Errorf("received %d: %w", n, err)
	}
	return <-ended
}

// working is a program that works.
func working() error {
	err := household()
	if err == nil {
		fmt.Println("it works")
	}
	return err
}

// refusedFor is a program that cannot work, and says of its error what it is.
func refusedFor(kinds ...error) tests {
	return func() error {
		err := household()
		if err == nil {
			return errors.New("it works")
		}
		for _, kind := range kinds {
			if !errors.Is(err, kind) {
				return fmt.Errorf("an error that is not %v: %w", kind, err)
			}
		}
		fmt.Println("refused:", err)
		return nil
	}
}

// in are programs that run where something is missing, after what prepares it.
func in(prepare func() error, run func() error) func() {
	return func() {
		if !shoal.IsWorker() {
			if err := prepare(); err != nil {
				fmt.Println("not permitted:", err)
				os.Exit(6)
			}
		}
		shoaltest.TestMain(tests(run))
	}
}

func nothingToPrepare() error { return nil }

func init() {
	programs["household"] = in(nothingToPrepare, working)
	programs["no shm"] = in(withoutDevShm, working)
	programs["read-only"] = in(readOnly, working)
	programs["own proc"] = in(ownProc, working)
	programs["refused"] = in(nothingToPrepare, refusedFor(errors.ErrUnsupported))
	programs["few descriptors"] = in(fewDescriptors, exhausted)
	programs["few descriptors at first"] = in(fewDescriptors, exhaustedAtFirst)
	programs["no descriptors for the first start"] = func() { shoal.Main(noFirstStart) }
	programs["few processes"] = in(nothingToPrepare, fewProcesses)
}

// privately keeps mounts of this process from all others.
func privately() error { return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") }

// withoutDevShm leaves a /dev with a few devices only.
func withoutDevShm() error {
	if err := privately(); err != nil {
		return err
	}
	dev, err := os.MkdirTemp("", "shoal-dev-")
	if err != nil {
		return err
	}
	defer os.Remove(dev) // the directory below the mount that moves away
	if err := syscall.Mount("tmpfs", dev, "tmpfs", 0, ""); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "urandom"} {
		if err := os.WriteFile(filepath.Join(dev, name), nil, 0o666); err != nil {
			return err
		}
		if err := syscall.Mount("/dev/"+name, filepath.Join(dev, name), "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	if err := syscall.Mount(dev, "/dev", "", syscall.MS_MOVE, ""); err != nil {
		return err
	}
	if _, err := os.Stat("/dev/shm"); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("/dev/shm is there: %v", err)
	}
	return nil
}

// readOnly makes every file system read-only.
func readOnly() error {
	if err := privately(); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		at := strings.Fields(line)[1]
		syscall.Mount("", at, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "") // some cannot be
	}
	for _, dir := range []string{"/", "/tmp", "/dev/shm", "."} {
		if f, err := os.CreateTemp(dir, "shoal-"); err == nil {
			f.Close()
			os.Remove(f.Name())
			return fmt.Errorf("%s can be written to", dir)
		}
	}
	return nil
}

// ownProc has /proc show the processes of this PID namespace alone.
func ownProc() error {
	return errors.Join(privately(), syscall.Mount("proc", "/proc", "proc", 0, ""))
}

// someone is a user who has no other process.
const someone = 54321

func TestEnvironment_ProgramsWorkWhereSomethingIsMissing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("an emulator is not in the namespaces")
	}
	for name, c := range map[string]struct {
		program string
		attr    *syscall.SysProcAttr
	}{
		"nothing":          {"household", nil},
		"no /dev/shm":      {"no shm", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}},
		"a read-only root": {"read-only", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}},
		"another user": {"household",
			&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone, Gid: someone}}},
		"a PID namespace": {"own proc", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}},
		"a PID namespace with the /proc of another": {"household",
			&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}},
		"a network namespace": {"household", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := program(t, c.program)
			cmd.SysProcAttr = c.attr
			if out := permitted(t, cmd); !strings.Contains(out, "it works\n") {
				t.Error(out)
			}
		})
	}
}

// permitted runs a program, which must succeed, or is not permitted.
func permitted(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	b, err := cmd.CombinedOutput()
	out := string(b)
	switch {
	case cmd.Process == nil:
		t.Skipf("this system does not permit it: %v", err)
	case strings.HasPrefix(out, "not permitted: "):
		t.Skip(out)
	case cmd.ProcessState.ExitCode() != 5:
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// A filter that refuses a call has the program say which one, and what to do.
func TestEnvironment_ASeccompFilterIsNamed(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"memfd_create", "pidfd_open"} {
		for _, errno := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS} {
			t.Run(call+" "+errno.Error(), func(t *testing.T) {
				t.Parallel()
				cmd := program(t, "refused")
				var b strings.Builder
				cmd.Stdout, cmd.Stderr = &b, &b
				if err := startFiltered(cmd, call, errno); err != nil {
					t.Skip("this system gives no filters: ", err)
				}
				err := cmd.Wait()
				if out := b.String(); cmd.ProcessState.ExitCode() != 5 ||
					!strings.Contains(out, call+" is not available") ||
					!strings.Contains(out, "a seccomp filter that allows the call") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// startFiltered starts a program by a thread that has a filter, which the program inherits.
func startFiltered(cmd *exec.Cmd, call string, errno syscall.Errno) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := sys.RefuseCall(call, errno)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

// limitProcesses is RLIMIT_NPROC, which package syscall lacks.
const limitProcesses = 6

// few is how many descriptors the programs may have.
const few = 80

func fewDescriptors() error {
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: few, Max: few})
}

// takeDescriptors opens files until so many more can be opened, and returns what closes them.
func takeDescriptors(free int) func() {
	var taken []int
	for {
		fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	give := func(n int) {
		for ; n > 0 && len(taken) > 0; n-- {
			syscall.Close(taken[0])
			taken = taken[1:]
		}
	}
	give(free)
	return func() { give(len(taken)) }
}

// exhausted does all that a household does with fewer and fewer descriptors.
func exhausted() error {
	if err := household(); err != nil {
		return fmt.Errorf("with enough: %w", err)
	}
	return exhaust()
}

// exhaustedAtFirst begins with too few.
func exhaustedAtFirst() error {
	r, w, err := os.Pipe() // which begins Go's poller: the runtime gives up where that fails
	if err != nil {
		return err
	}
	r.Close()
	w.Close()
	return exhaust()
}

func exhaust() error {
	worked, failed := 0, 0
	for free := range 40 {
		giveBack := takeDescriptors(free)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		for what, do := range map[string]func(context.Context) error{"messages": messages, "lock": deathOfAHolder} {
			err := do(ctx)
			switch {
			case err == nil:
				worked++
			case errors.Is(err, syscall.EMFILE) && strings.Contains(err.Error(), "ulimit -n"):
				failed++
			default:
				giveBack()
				cancel()
				return fmt.Errorf("%s with %d descriptors: %w", what, free, err)
			}
		}
		cancel()
		giveBack()
	}
	if worked == 0 || failed == 0 {
		return fmt.Errorf("%d have worked and %d have failed", worked, failed)
	}
	if err := household(); err != nil {
		return fmt.Errorf("with enough again: %w", err)
	}
	fmt.Println("worked", worked, "failed", failed)
	return nil
}

// noFirstStart has no descriptors for the first start of the program, and some for the second. (In
// TestMain a start's lasting files are open before the tests.)
func noFirstStart(ctx context.Context) error {
	if err := fewDescriptors(); err != nil {
		return err
	}
	q, err := ipc.NewQueue[*tensor.Tensor](4)
	if err != nil {
		return err
	}
	defer q.Close()
	giveBack := takeDescriptors(1)
	err = giveOne.Spawn(ctx, 1, q)
	giveBack()
	if !errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("without descriptors: %w", err)
	}
	return giveOne.Spawn(ctx, 1, q)
}

func TestEnvironment_AProgramStartsAgainAfterItsFirstStartHasFailed(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "no descriptors for the first start"); status != 0 {
		t.Errorf("status %d: %s", status, out)
	}
}

func TestEnvironment_WithoutDescriptors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"few descriptors", "few descriptors at first"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(permitted(t, program(t, name)))
		})
	}
}

// fewProcesses starts processes until the user may have no more.
func fewProcesses() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := household(); err != nil {
		return fmt.Errorf("with enough: %w", err)
	}
	keepThreads(64) // Go's runtime gives up where it needs a thread and gets none
	own, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	worked, failed := 0, 0
	for more := range 16 {
		limit := syscall.Rlimit{Cur: uint64(len(own) + more), Max: 4096}
		if err := syscall.Setrlimit(limitProcesses, &limit); err != nil {
			return err
		}
		err := messages(ctx)
		switch {
		case err == nil:
			worked++
		case errors.Is(err, syscall.EAGAIN) && strings.Contains(err.Error(), "ulimit -u"):
			failed++
		default:
			return fmt.Errorf("with %d threads more: %w", more, err)
		}
	}
	if err := syscall.Setrlimit(limitProcesses, &syscall.Rlimit{Cur: 4096, Max: 4096}); err != nil {
		return err
	}
	if failed == 0 {
		return fmt.Errorf("%d have worked and none has failed", worked)
	}
	if err := household(); err != nil {
		return fmt.Errorf("with enough again: %w", err)
	}
	fmt.Println("worked", worked, "failed", failed)
	return nil
}

// keepThreads has the runtime start n threads, which it keeps.
func keepThreads(n int) {
	ready, enough := make(chan struct{}), make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready <- struct{}{}
			<-enough
		}()
	}
	for range n {
		<-ready
	}
	close(enough)
}

func TestEnvironment_WithoutProcesses(t *testing.T) {
	t.Parallel()
	for range 20 {
		cmd := program(t, "few processes")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone + 1, Gid: someone + 1}}
		b, err := cmd.CombinedOutput()
		switch out := string(b); {
		case cmd.Process == nil:
			t.Skipf("this system does not permit it: %v", err)
		case cmd.ProcessState.ExitCode() == 5:
			t.Log(out[strings.LastIndex(out, "worked"):])
			return
		case !strings.Contains(out, "pthread_create failed") &&
			!strings.Contains(out, "failed to create new OS thread"):
			t.Fatalf("%v\n%s", err, out)
		}
		// the runtime of the program itself got no thread, for which nothing can be done
	}
	t.Error("the program always ends before it has seen an error")
}

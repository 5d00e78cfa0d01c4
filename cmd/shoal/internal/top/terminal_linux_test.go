package top_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/top"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// role is the variable that makes the test binary another program.
const role = "SHOAL_TOP_TEST"

// play runs what the variable says, if it says something.
func play() {
	o := top.Options{Every: 20 * time.Millisecond, Keys: os.Stdin}
	see := new(domains.Watcher).Look
	switch os.Getenv(role) {
	case "":
		return
	case "panic":
		looks := 0
		see = func(context.Context, time.Duration) (domains.Census, error) {
			if looks++; looks > 3 {
				panic("a look that fails")
			}
			return census(many(3)), nil
		}
	case "failure":
		looks := 0
		see = func(context.Context, time.Duration) (domains.Census, error) {
			if looks++; looks > 3 {
				return domains.Census{}, errors.New("the table of processes is away")
			}
			return census(many(3)), nil
		}
	case "job":
		job()
	}
	shoal.Main(func(ctx context.Context) error { return top.RunWith(ctx, os.Stdout, o, see) })
}

// job is a shell: it starts a screen as a job of the terminal, says when it stops and ends, and
// lets it go on.
func job() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	os.Setenv(role, "screen")
	p, err := os.StartProcess(self, []string{"shoal"}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}})
	if err != nil {
		panic(err)
	}
	report, orders := os.NewFile(3, "report"), bufio.NewReader(os.NewFile(4, "orders"))
	for {
		var s syscall.WaitStatus
		if _, err := syscall.Wait4(p.Pid, &s, syscall.WUNTRACED, nil); err != nil {
			continue // interrupted
		}
		if !s.Stopped() {
			fmt.Fprintln(report, "ended", s.ExitStatus())
			os.Exit(0)
		}
		fmt.Fprintln(report, "stopped")
		orders.ReadString('\n')
		syscall.Kill(-p.Pid, syscall.SIGCONT)
	}
}

// A tty is a pseudo-terminal with a program on it, and what the program has written.
type tty struct {
	t             *testing.T
	person, other *os.File // the two sides of it
	before        *term.State
	cmd           *exec.Cmd
	ended         chan struct{}

	mu      sync.Mutex
	written strings.Builder
}

// open starts the test binary in a role on a terminal of its own.
func open(t *testing.T, name string, width, height int, more ...func(*exec.Cmd)) *tty {
	t.Helper()
	p, o, err := pty.Open()
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	y := &tty{t: t, person: p, other: o, ended: make(chan struct{})}
	y.resize(width, height)
	if y.before, err = term.GetState(int(o.Fd())); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	y.cmd = &exec.Cmd{Path: self, Args: []string{"shoal"}, Stdin: o, Stdout: o, Stderr: o,
		Env:         append(os.Environ(), role+"="+name, "TERM=xterm", "NO_COLOR=", "LC_ALL=C.UTF-8"),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}}
	for _, f := range more {
		f(y.cmd)
	}
	if err := y.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // until both sides have closed
		b := make([]byte, 4096)
		for {
			n, err := p.Read(b)
			y.mu.Lock()
			y.written.Write(b[:n])
			y.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { y.cmd.Wait(); close(y.ended) }()
	t.Cleanup(func() {
		y.cmd.Process.Kill()
		<-y.ended
		o.Close()
		p.Close()
	})
	return y
}

func (y *tty) resize(width, height int) {
	if err := pty.Setsize(y.person, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		y.t.Fatal(err)
	}
}

func (y *tty) text() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.written.String()
}

// frame is the last whole one, without styles.
func (y *tty) frame() string {
	text := y.text()
	to := strings.LastIndex(text, top.End)
	from := strings.LastIndex(text[:max(to, 0)], top.Begin)
	if from < 0 {
		return ""
	}
	f := strings.NewReplacer("\x1b[2K", "", "\x1b[J", "", "\r\n", "\n").Replace(text[from+len(top.Begin) : to])
	return sgr.ReplaceAllString(f, "")
}

// await waits until a frame is as is wanted.
func (y *tty) await(what string, is func(frame string) bool) string {
	y.t.Helper()
	var f string
	testutil.EventuallyNoError(y.t, func() error {
		if f = y.frame(); !is(f) {
			return fmt.Errorf("no frame with %s; the last one is\n%s\nof\n%q", what, f, tail(y.text()))
		}
		return nil
	})
	return f
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

// has waits for a text in a frame.
func (y *tty) has(text string) string {
	y.t.Helper()
	return y.await(text, func(f string) bool { return strings.Contains(f, text) })
}

// matches waits for a frame with lines that follow each other.
func (y *tty) matches(pattern string) string {
	y.t.Helper()
	re := regexp.MustCompile("(?s)" + pattern)
	return y.await(pattern, re.MatchString)
}

func (y *tty) press(keys string) {
	y.t.Helper()
	if _, err := io.WriteString(y.person, keys); err != nil {
		y.t.Fatal(err)
	}
}

// ends waits for the end of the program. The terminal must be as it was.
func (y *tty) ends(status int) {
	y.t.Helper()
	select {
	case <-y.ended:
	case <-time.After(watchdog):
		y.t.Fatalf("it does not end; it has written %q", tail(y.text()))
	}
	if got := y.cmd.ProcessState.ExitCode(); got != status {
		y.t.Errorf("%v, want status %d; it has written %q", y.cmd.ProcessState, status, tail(y.text()))
	}
	y.restored()
}

func (y *tty) restored() {
	y.t.Helper()
	now, err := term.GetState(int(y.other.Fd()))
	if err != nil {
		y.t.Fatal(err)
	}
	if !reflect.DeepEqual(now, y.before) {
		y.t.Errorf("the modes of the terminal are %+v, and were %+v", now, y.before)
	}
	testutil.EventuallyNoError(y.t, func() error {
		text := y.text()
		if in, out := strings.LastIndex(text, top.Enter), strings.LastIndex(text, top.Leave); in < 0 || out <= in {
			return fmt.Errorf("the screen has not gone: %q", tail(text))
		}
		return nil
	})
}

// A knot is two locks, each of which a worker has.
type knot struct {
	Locks [2]*ipc.Mutex
	Both  *ipc.Barrier
	Ready *ipc.Sender[int]
}

var tied = shoal.Register("tied", func(ctx context.Context, rank int, k knot) error {
	if err := k.Locks[rank].Lock(ctx); err != nil {
		return err
	}
	defer k.Locks[rank].Unlock()
	if _, err := k.Both.Wait(ctx); err != nil {
		return err
	}
	if err := k.Ready.Put(ctx, os.Getpid()); err != nil {
		return err
	}
	return k.Locks[1-rank].Lock(ctx)
})

// tie starts two workers that wait for each other.
func tie(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*watchdog)
	ready, err := ipc.NewQueue[int](2)
	if err != nil {
		t.Fatal(err)
	}
	k := knot{Ready: ready.Sender()}
	for i := range k.Locks {
		if k.Locks[i], err = ipc.NewMutex(); err != nil {
			t.Fatal(err)
		}
	}
	if k.Both, err = ipc.NewBarrier(2); err != nil {
		t.Fatal(err)
	}
	g := shoal.NewGroup(ctx, shoal.Options{})
	for range 2 {
		tied.Go(g, k)
	}
	t.Cleanup(func() {
		stop()
		g.Close()
		k.Both.Close()
		k.Locks[0].Close()
		k.Locks[1].Close()
		ready.Close()
	})
	for range 2 {
		if _, err := ready.Get(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAScreenAtATerminal(t *testing.T) {
	tie(t)
	y := open(t, "screen", 160, 50)
	y.matches(`DEADLOCK suspected: [^\n]*tied [01] \([0-9]+\), tied [01]`)
	y.press("/tied")
	y.has("filter: tied")
	y.press("\r")
	y.matches(`by as found\n *PID.*\n[^\n]*tied [01] [^\n]*\n[^\n]*tied [01] [^\n]*\n *\n`) // no other process
	y.press("ss")
	y.matches(`NAME▼.*\n[^\n]*tied 0 [^\n]*\n[^\n]*tied 1 `)
	y.press("R")
	y.matches(`NAME▲.*\n[^\n]*tied 1 [^\n]*\n[^\n]*tied 0 `)
	y.press("\x1b[B\r") // down, and in
	f := y.matches(`process tied 0 \([0-9]+\)\n.*waits for +the mutex`)
	if !strings.Contains(f, "owns") || !strings.Contains(f, "function    tied") {
		t.Errorf("the detail is\n%s", f)
	}
	y.press("\x1b") // no more follows, so it is the key
	y.has("NAME▲")
	y.press("4")
	y.matches(`WAITS FOR.*\n[^\n]*tied [01] \([0-9]+\) +the mutex`)
	y.press("\x1b[Z\x1b[Z\x1b[Z/\x15zzzz\r")
	y.has(`no rows match "zzzz"`)
	y.press("?")
	y.has("redraw")
	y.press("\x1b")
	y.press(" ")
	y.has("PAUSED")
	y.resize(40, 12)
	y.await("40 columns", func(f string) bool {
		lines := strings.Split(f, "\n")
		return len(lines) == 12 && !slices.ContainsFunc(lines, func(l string) bool { return len([]rune(l)) > 40 })
	})
	y.press("q")
	y.ends(0)
	if text := y.text(); !strings.Contains(text, "\x1b[1;31mDEADLOCK") {
		t.Error("the deadlock is not red")
	}
}

func TestHoweverAScreenEndsTheTerminalIsAsItWas(t *testing.T) {
	tie(t) // so that there is a program to be seen
	kill := func(s syscall.Signal) func(y *tty) {
		return func(y *tty) { syscall.Kill(y.cmd.Process.Pid, s) }
	}
	for name, c := range map[string]struct {
		role   string
		end    func(y *tty)
		status int // -1: by the signal
		says   string
	}{
		"q":       {"screen", func(y *tty) { y.press("q") }, 0, ""},
		"Ctrl-C":  {"screen", func(y *tty) { y.press("\x03") }, 130, "interrupt"},
		"SIGINT":  {"screen", kill(syscall.SIGINT), 130, "interrupt"},
		"SIGTERM": {"screen", kill(syscall.SIGTERM), 143, "terminated"},
		"SIGHUP":  {"screen", kill(syscall.SIGHUP), -1, ""},
		"SIGQUIT": {"screen", kill(syscall.SIGQUIT), 2, "SIGQUIT: quit"},
		"panic":   {"panic", func(*tty) {}, 2, "panic: a look that fails"},
		"failure": {"failure", func(*tty) {}, 1, "the table of processes is away"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "SIGHUP" && signal.Ignored(syscall.SIGHUP) {
				t.Skip("these tests were started with SIGHUP ignored, as by nohup, and so is the screen")
			}
			y := open(t, c.role, 80, 24)
			y.has("PID")
			c.end(y)
			y.ends(c.status)
			testutil.EventuallyNoError(t, func() error { // the reader may be late
				_, after, _ := strings.Cut(y.text(), top.Leave)
				if !strings.Contains(after, c.says) {
					return fmt.Errorf("it says %q behind the screen, want %q", after, c.says)
				}
				return nil
			})
		})
	}
}

func TestAClosedTerminalEndsTheScreen(t *testing.T) {
	for name, c := range map[string]func(*exec.Cmd){
		"by its signal": func(*exec.Cmd) {},
		// no terminal of its session
		"without one": func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} },
	} {
		t.Run(name, func(t *testing.T) {
			y := open(t, "screen", 80, 24, c)
			y.has("PID")
			y.other.Close()
			y.person.Close()
			select {
			case <-y.ended:
			case <-time.After(watchdog):
				t.Fatal("it goes on")
			}
			if y.cmd.ProcessState.Success() {
				t.Errorf("%v", y.cmd.ProcessState)
			}
		})
	}
}

func TestAScreenIsStoppedAndGoesOn(t *testing.T) {
	report, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer report.Close()
	out, orders, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	if err := report.SetReadDeadline(time.Now().Add(2 * watchdog)); err != nil {
		t.Fatal(err)
	}
	y := open(t, "job", 80, 24, func(c *exec.Cmd) { c.ExtraFiles = []*os.File{in, out} })
	in.Close()
	out.Close()
	says := bufio.NewReader(report)
	for range 2 {
		y.has("PID")
		n := len(y.text())
		y.press("\x1a")
		if l, err := says.ReadString('\n'); l != "stopped\n" {
			t.Fatalf("%q, %v; it has written %q", l, err, tail(y.text()))
		}
		y.restored()
		fmt.Fprintln(orders, "go on")
		testutil.EventuallyNoError(t, func() error {
			if !strings.Contains(y.text()[n:], top.Enter) {
				return fmt.Errorf("it does not go on: %q", tail(y.text()))
			}
			return nil
		})
	}
	y.press("2")
	y.matches("QUEUE|no queue")
	y.press("q")
	if l, err := says.ReadString('\n'); l != "ended 0\n" {
		t.Fatalf("%q, %v", l, err)
	}
	y.restored()
}

func TestAStopThatNobodyCouldEndIsNone(t *testing.T) {
	y := open(t, "screen", 80, 24) // leads its session, so it is an orphan
	y.has("PID")
	y.press("\x1a")
	y.press("?")
	y.has("redraw")
	y.press("q")
	y.press("q")
	y.ends(0)
}

func TestWhereThereIsNoScreenThereIsText(t *testing.T) {
	_, o, err := pty.Open()
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	defer o.Close()
	none, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	for _, c := range []struct {
		kind string
		o    top.Options
		out  *os.File
		want bool
	}{
		{"xterm", top.Options{Keys: o}, o, true},
		{"dumb", top.Options{Keys: o}, o, false},
		{"", top.Options{Keys: o}, o, false},
		{"xterm", top.Options{Keys: o, JSON: true}, o, false},
		{"xterm", top.Options{Keys: o, Count: 1}, o, false},
		{"xterm", top.Options{Keys: none}, o, false},
		{"xterm", top.Options{}, o, false},
		{"xterm", top.Options{Keys: o}, none, false},
	} {
		t.Setenv("TERM", c.kind)
		if got := c.o.HasScreen(c.out); got != c.want {
			t.Errorf("TERM=%s, %+v, out %s: %t", c.kind, c.o, c.out.Name(), got)
		}
	}
}

func TestTheEnvironmentSaysWhatATerminalPermits(t *testing.T) {
	for _, c := range []struct {
		noColour, all, lang string
		want                top.Face
	}{
		{"", "", "", top.Face{Colour: true}},
		{"1", "", "", top.Face{}},
		{"", "C", "en_GB.UTF-8", top.Face{Colour: true, ASCII: true}},
		{"", "", "en_GB.UTF-8", top.Face{Colour: true}},
		{"", "", "de_DE.utf8", top.Face{Colour: true}},
		{"", "", "POSIX", top.Face{Colour: true, ASCII: true}},
		{"", "C.UTF-8", "C", top.Face{Colour: true}},
	} {
		t.Setenv("NO_COLOR", c.noColour)
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", "")
		t.Setenv("LANG", c.lang)
		if got := top.FaceOf(); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

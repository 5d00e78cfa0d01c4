package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// A commandRow says how one command is made to do what every command must stand. Arguments are
// separated by a space.
type commandRow struct {
	short string // prints something, and ends
	long  string // goes on until it is ended; "" for a command that is over at once

	// begun is what long says when it is at work; "" if it is silent. Then open is the file that it
	// has open at work, if there is one.
	begun, open string

	writes bool   // long goes on to write, so it ends with its reader
	saves  string // the file that long leaves when its reader leaves
	wide   bool   // at a terminal its lines may be longer than the terminal is wide
	wrong  []wrongUse
}

// A wrongUse is a command line that fails, with what the error names.
type wrongUse struct {
	args   string
	status int
	says   string
}

const (
	tokens = ` tokens {"path":"text.bin","length":4}`
	host   = "serve -listen 127.0.0.1:0 -batch-size 2 -every 5ms -key-file "
)

// commandRows are those of every command of shoal. The files are those of layOut.
var commandRows = map[string]commandRow{
	"hogwild": {short: "hogwild --dry-run --workers=1", wide: true,
		long: "hogwild --epochs 100 --workers 1 --log-interval 1 --trace t.json --out m.safetensors", begun: "oss",
		writes: true, saves: "m.safetensors",
		wrong: []wrongUse{{"hogwild --workers 0", 2, "--workers 0"},
			{"hogwild --data empty.npy", 1, "empty.npy is not a directory"},
			{"hogwild --data folder.npy", 1, "missing files with --download"},
			{"hogwild --data secret.npy", 1, "secret.npy is not a directory"},
			{"hogwild --trace folder.npy", 1, "folder.npy"},
			{"hogwild --trace secret/t.json", 1, "permission denied"}}},
	"run": {short: "run -n 2 -- echo hello", long: `run -n 2 -- sh -c while:;do${IFS}echo${IFS}hello;sleep${IFS}.01;done`,
		begun: "hello", writes: true,
		wrong: []wrongUse{{"run", 2, "missing program"}, {"run -n x -- true", 2, "-n"},
			{"run -- ./empty.npy", 127, "permission denied"},
			{"run -- ./folder.npy", 127, "permission denied"}, {"run -- ./none", 127, "no such file"}}},
	"bench": {short: "bench --quick floors", wide: true, long: "bench sync", begun: "CPUs usable",
		wrong: []wrongUse{{"bench nothing", 2, "want one of core"},
			{"bench --against torch --python ./garbage.npy floors", 1, "--python"},
			{"bench --against torch --python ./folder.npy floors", 1, "--python"}}},
	"broker": {short: "broker --help", wide: true, long: "broker -dir store -port 0", begun: "nats://",
		wrong: []wrongUse{{"broker -nodes 2", 2, "-nodes 2"}, {"broker now", 2, `"now"`},
			{"broker -dir empty.npy", 1, "empty.npy"},
			{"broker -dir store2 -port 0 -token-file empty.npy", 1, "empty.npy is empty"},
			{"broker -dir store2 -port 0 -user a -password-file empty.npy", 1, "empty.npy is empty"},
			{"broker -dir store2 -port 0 -user a", 2, "-password-file"},
			{"broker -dir store2 -token-file folder.npy", 1, "folder.npy"},
			{"broker -dir store2 -token-file secret.npy", 1, "permission denied"},
			{"broker -dir store2 -cert garbage.npy -key garbage.npy", 1, "PEM"}}},
	"loader": {short: "loader", wide: true, wrong: []wrongUse{{"loader now", 2, `"now"`}}},
	"serve": {short: "serve --help", wide: true, long: host + "text.bin" + tokens, begun: "serving",
		wrong: []wrongUse{{"serve", 2, "missing data set"}, {"serve" + tokens + " more", 2, `"more"`},
			{"serve" + tokens, 2, "base64"},
			{host + "empty.npy" + tokens, 2, "empty.npy is empty"}, {host + "folder.npy" + tokens, 1, "folder.npy"},
			{host + "secret.npy" + tokens, 1, "permission denied"}, {host + "text.bin none", 2, `"none"`},
			{host + `text.bin tokens {"path":"garbage.npy","length":4}`, 1, "garbage.npy"},
			{host + `text.bin tokens {"path":"folder.npy","length":4}`, 1, "folder.npy"},
			{"serve -batch-size 0" + tokens, 2, "-batch-size 0"}}},
	"inspect": {short: "inspect good.npy", wide: true, long: "inspect large.npy", open: "large.npy",
		wrong: append(wrongFiles("inspect %s"), wrongUse{"inspect", 2, "FILE"},
			wrongUse{"inspect good.npy more", 2, `"more"`})},
	"convert": {short: "convert good.npy b.npz", wide: true, long: "convert large.npy c.npz", open: "large.npy",
		wrong: append(wrongFiles("convert %s b.npz"), wrongUse{"convert good.npy", 2, "TO"},
			wrongUse{"convert good.npy b.npz more", 2, `"more"`},
			wrongUse{"convert good.npy folder.npy", 1, "not a regular file"},
			wrongUse{"convert good.npy none/b.npz", 1, "none"},
			wrongUse{"convert good.npy secret/b.npz", 1, "permission denied"},
			wrongUse{"convert good.npy b.txt", 1, "b.txt"})},
	"doctor": {short: "doctor --span=20ms", wide: true, long: "doctor --span=1h",
		wrong: []wrongUse{{"doctor --span=0s", 2, "--span 0s"}, {"doctor --span=soon", 2, "soon"},
			{"doctor now", 2, `"now"`},
			{"doctor --pid=0", 2, "pid 0: want a positive number"},
			{"doctor --pid=4194304", 2, "no process 4194304 is running"},
			{"doctor --pid=1 --clean", 2, "at most one of"}, {"doctor --yes", 2, "want --clean"}}},
	"top": {short: "top --count=1 --every=20ms", long: "top --every=20ms", begun: "CPU", writes: true, wide: true,
		wrong: []wrongUse{{"top --every=0s", 2, "--every 0s"}, {"top --count=-1", 2, "--count -1"},
			{"top now", 2, `"now"`}}},
	"watch": {short: "watch --help", wide: true, long: "watch", begun: "http://",
		wrong: []wrongUse{{"watch now", 2, `"now"`}, {"watch -every soon", 2, "soon"},
			{"watch -cert garbage.npy -key garbage.npy", 1, "PEM"}, {"watch -cert empty.npy -key empty.npy", 1, "PEM"},
			{"watch -cert folder.npy -key folder.npy", 1, "folder.npy"},
			{"watch -cert secret.npy -key secret.npy", 1, "permission denied"}}},
	"ps": {short: "ps --every=20ms", wide: true, long: "ps --every=1h",
		wrong: []wrongUse{{"ps --every=-1s", 2, "--every -1s"}, {"ps now", 2, `"now"`}}},
	"version":    {short: "version", wide: true, wrong: []wrongUse{{"version now", 2, `"now"`}}},
	"completion": {short: "completion bash", wide: true, wrong: []wrongUse{{"completion", 2, "shell"}, {"completion csh", 2, "csh"}, {"completion bash now", 2, `"now"`}}},
	"man":        {short: "man", wide: true, wrong: []wrongUse{{"man now", 2, `"now"`}}},
}

// wrongFiles are the uses of each sort of file that is none of tensors, by each format.
func wrongFiles(args string) (all []wrongUse) {
	for _, kind := range []string{"npy", "npz", "safetensors", "safetensors.index.json", "pt", "h5", "msgpack"} {
		for _, name := range []string{"empty.", "garbage.", "folder."} {
			all = append(all, wrongUse{fmt.Sprintf(args, name+kind), 1, name + kind})
		}
	}
	return append(all, wrongUse{fmt.Sprintf(args, "secret.npy"), 1, "permission denied"},
		wrongUse{fmt.Sprintf(args, "none.npy"), 1, "no such file"}, wrongUse{fmt.Sprintf(args, "good"), 1, "good"})
}

// standAt is a folder, which TestMain makes and removes.
var standAt string

// stand returns it with the programs in it that stand beside the command, and the command itself.
var stand = sync.OnceValues(func() (dir string, err error) {
	dir = standAt
	self, err := os.Executable()
	if err != nil {
		return dir, err
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		return dir, err
	}
	if err := os.WriteFile(filepath.Join(dir, "shoal"), binary, 0o755); err != nil {
		return dir, err
	}
	out, err := exec.Command("go", "build", "-o", dir+"/", "../shoal-watch", "../shoal-broker", "../shoal-loader").
		CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	return dir, os.Chmod(dir, 0o755)
})

// A bench has a folder of its own for a command's files, and for temporary ones.
type commandBench struct{ programs, work, temp string }

// layOut makes the folders, with a good file and each sort of wrong one.
func layOut(t *testing.T) commandBench {
	t.Helper()
	programs, err := stand()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "shoal-command-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	b := commandBench{programs, filepath.Join(root, "work"), filepath.Join(root, "temp")}
	garbage := bytes.Repeat([]byte{0x9c, 0xd5, 0x07, 0xee, 0x41}, 1000)
	err = errors.Join(os.Chmod(root, 0o755), os.Mkdir(b.work, 0o777), os.Mkdir(b.temp, 0o777),
		os.Chmod(b.work, 0o777), os.Chmod(b.temp, 0o777))
	for _, kind := range []string{"npy", "npz", "safetensors", "safetensors.index.json", "pt", "h5", "msgpack"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(b.work, "empty."+kind), nil, 0o644),
			os.WriteFile(filepath.Join(b.work, "garbage."+kind), garbage, 0o644),
			os.Mkdir(filepath.Join(b.work, "folder."+kind), 0o755))
	}
	for name, mode := range map[string]fs.FileMode{"text.bin": 0o644, "secret.npy": 0} {
		err = errors.Join(err,
			os.WriteFile(filepath.Join(b.work, name), []byte("Some tokens of two bytes each, not many."), mode))
	}
	err = errors.Join(err, os.Mkdir(filepath.Join(b.work, "secret"), 0), b.array("good.npy", 4))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// array writes a file of numpy with n zeros, which take no room on the disk.
func (b commandBench) array(name string, n int) error {
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", n)
	head += strings.Repeat(" ", 118-len(head)-1) + "\n"
	path := filepath.Join(b.work, name)
	if err := os.WriteFile(path, append([]byte("\x93NUMPY\x01\x00\x76\x00"), head...), 0o644); err != nil {
		return err
	}
	return os.Truncate(path, int64(128+4*n))
}

// command returns the command. It is never root, whom the modes of files do not keep out.
func (b commandBench) command(args string, env ...string) *exec.Cmd {
	words := strings.Split(args, " ")
	for i, w := range words { // one word of a shell's program
		if strings.Contains(w, "${IFS}") {
			words[i] = strings.ReplaceAll(strings.ReplaceAll(w, "while:", "while :"), "${IFS}", " ")
		}
	}
	c := &exec.Cmd{Path: filepath.Join(b.programs, "shoal"), Args: append([]string{"shoal"}, words...), Dir: b.work,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	c.Env = append(os.Environ(),
		append([]string{"TMPDIR=" + b.temp, "HOME=" + b.temp, "PATH=" + b.programs + ":" + os.Getenv("PATH"),
			"TERM=xterm"}, env...)...)
	if os.Getuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	return c
}

// patience is for what takes a second, on a machine that does something else.
const patience = time.Minute

// finish waits for a command, and kills one that does not end.
func finish(t *testing.T, c *exec.Cmd) {
	t.Helper()
	late := time.AfterFunc(patience, func() {
		t.Errorf("%q does not end", c.Args)
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	})
	defer late.Stop()
	c.Wait()
	if left := session(c.Process.Pid); len(left) > 0 {
		t.Errorf("%q leaves processes: %v", c.Args, left)
	}
}

// session lists the processes that a command has started, and that do not end when it has ended.
func session(leader int) (left []string) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		left = nil
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			text, _ := os.ReadFile(path)
			name, rest, ok := strings.Cut(string(text), ") ")
			if f := strings.Fields(rest); ok && len(f) > 3 && f[3] == strconv.Itoa(leader) && f[0] != "Z" {
				left = append(left, name+")")
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// sane fails where a text is that of a program which has come to grief.
func sane(t *testing.T, what, text string) {
	t.Helper()
	for _, bad := range []string{"panic", "goroutine ", "broken pipe", "context canceled", "signal:", "SIGPIPE",
		"runtime error"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s says %q:\n%s", what, bad, text)
		}
	}
}

// status is as a shell has it.
func statusOf(c *exec.Cmd) int {
	if w, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return c.ProcessState.ExitCode()
}

// clean fails where a command has left a temporary file, a part of a file, or a file in /dev/shm.
func (b commandBench) clean(t *testing.T, c *exec.Cmd) {
	t.Helper()
	for _, dir := range []string{b.temp, b.work} {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && (dir == b.temp || strings.HasSuffix(path, "-part")) {
				t.Errorf("%q leaves %s", c.Args, path)
			}
			return nil
		})
	}
	shm, _ := filepath.Glob(fmt.Sprintf("/dev/shm/*_%d_*", c.Process.Pid))
	if len(shm) > 0 {
		t.Errorf("%q leaves %v", c.Args, shm)
	}
}

func TestEveryCommandHasARow(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Cmd{Path: self, Args: []string{"shoal", ""}, Env: append(os.Environ(), "GO_FLAGS_COMPLETION=1")}
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(out))
	if len(names) < len(commands) {
		t.Fatalf("the program completes to %q only", names)
	}
	for _, name := range names {
		if row, ok := commandRows[name]; !ok || len(row.wrong) == 0 {
			t.Errorf("shoal %s has no row in commandRows", name)
		}
	}
	for name := range commandRows {
		if !slices.Contains(names, name) {
			t.Errorf("there is no command %q", name)
		}
	}
}

func TestEveryCommand(t *testing.T) {
	for name, row := range commandRows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := layOut(t)
			b.helps(t, name)
			b.plain(t, row)
			b.narrow(t, row.short, !row.wide)
			b.narrow(t, name+" --help", !slices.Contains([]string{"broker", "serve", "watch"}, name))
			b.closed(t, row.short)
			if row.long != "" {
				if row.begun != "" {
					b.closed(t, row.long)
				}
				for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
					b.ended(t, row, s)
				}
			}
			if row.writes {
				b.unread(t, row)
			}
			for _, w := range append(row.wrong, wrongUse{name + " --frobnicate", 2, "frobnicate"}) {
				b.misused(t, w)
			}
		})
	}
}

// helps wants help on standard output, and nothing else.
func (b commandBench) helps(t *testing.T, name string) {
	c := b.command(name + " --help")
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	finish(t, c)
	shown := strings.Contains(out.String(), "Usage") || strings.Contains(out.String(), "-listen")
	if statusOf(c) != 0 || errs.Len() > 0 || !shown {
		t.Errorf("%s --help: status %d\n%s%s", name, statusOf(c), out.String(), errs.String())
	}
}

// plain wants no sequence of a terminal where there is none.
func (b commandBench) plain(t *testing.T, row commandRow) {
	c := b.command(row.short)
	out, err := c.CombinedOutput()
	if err != nil || len(out) == 0 || bytes.ContainsRune(out, '\x1b') {
		t.Errorf("%s: %v\n%q", row.short, err, out)
	}
	b.clean(t, c)
}

var (
	sequence = regexp.MustCompile(`\x1b(\[[0-9;?]*[a-zA-Z]|[()][A-Z0-9]|[=>78])`)
	colour   = regexp.MustCompile(`\x1b\[([0-9]+;)*([34][0-8]|9[0-7]|10[0-7])(;[0-9]+)*m`)
)

// narrow runs a command at a terminal of 40 columns that wants no colours.
func (b commandBench) narrow(t *testing.T, args string, fits bool) {
	c := b.command(args, "NO_COLOR=1")
	tty, err := pty.StartWithAttrs(c, &pty.Winsize{Rows: 24, Cols: 40}, ofTerminal(c))
	if err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(tty) // until the terminal hangs up
	finish(t, c)
	tty.Close()
	if statusOf(c) != 0 || len(out) == 0 || colour.Match(out) {
		t.Errorf("%s at a terminal without colours: status %d\n%q", args, statusOf(c), out)
	}
	for line := range strings.Lines(string(sequence.ReplaceAll(out, nil))) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\r\n")); fits && n > 40 {
			t.Errorf("%s: a line of %d at 40 columns: %q", args, n, line)
		}
	}
}

// ofTerminal is for a command that leads the session of a terminal.
func ofTerminal(c *exec.Cmd) *syscall.SysProcAttr {
	a := *c.SysProcAttr
	a.Setsid, a.Setctty = true, true
	return &a
}

// closed runs a command whose output nobody reads from the beginning.
func (b commandBench) closed(t *testing.T, args string) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	c := b.command(args)
	var errs strings.Builder
	c.Stdout, c.Stderr = w, &errs
	err = c.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	finish(t, c)
	sane(t, args+" | nobody", errs.String())
	if s := statusOf(c); s != 0 && s != 128+int(syscall.SIGPIPE) {
		t.Errorf("%s | nobody: status %d\n%s", args, s, errs.String())
	}
}

// unread runs a command whose reader leaves when it has seen it at work.
func (b commandBench) unread(t *testing.T, row commandRow) {
	if row.saves != "" { // one that is there is of another run
		os.Remove(filepath.Join(b.work, row.saves))
	}
	c := b.command(row.long)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	if _, err := readUntil(out, row.begun); err != nil {
		t.Errorf("%s: %v", row.long, err)
	}
	late.Stop()
	out.Close()
	finish(t, c)
	sane(t, row.long+" | head", errs.String())
	if s := statusOf(c); s != 128+int(syscall.SIGPIPE) {
		t.Errorf("%s | head: status %d\n%s", row.long, s, errs.String())
	}
	b.clean(t, c)
	if row.saves == "" {
		return
	}
	text, err := b.command("inspect " + row.saves).CombinedOutput()
	if err != nil || !strings.Contains(errs.String(), row.saves) {
		t.Errorf("%s | head: it says %q, and %s is of no use: %v: %s", row.long, errs.String(), row.saves, err, text)
	}
}

// readUntil reads until a text has come.
func readUntil(r io.Reader, text string) (string, error) {
	var all strings.Builder
	for p := make([]byte, 4096); !strings.Contains(all.String(), text); {
		n, err := r.Read(p)
		all.Write(p[:n])
		if err != nil {
			return all.String(), fmt.Errorf("it says %q and not %q: %w", all.String(), text, err)
		}
	}
	return all.String(), nil
}

// ended sends a command at a terminal a signal while it is at work.
func (b commandBench) ended(t *testing.T, row commandRow, s syscall.Signal) {
	what := fmt.Sprintf("%s after %v", row.long, s)
	for size := 32 << 20; ; size *= 2 {
		if row.open != "" {
			if err := b.array(row.open, size); err != nil {
				t.Fatal(err)
			}
		}
		c := b.command(row.long)
		tty, slave, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		before, err := term.GetState(int(tty.Fd()))
		if err == nil {
			err = pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 100})
		}
		c.Stdin, c.Stdout, c.Stderr, c.SysProcAttr = slave, slave, slave, ofTerminal(c)
		if err == nil {
			err = c.Start()
		}
		slave.Close()
		if err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(patience, func() { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
		heard, err := readUntil(tty, row.begun)
		late.Stop()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		rest := make(chan string, 1)
		go func() {
			text, _ := io.ReadAll(tty)
			rest <- string(text)
		}()
		if row.begun == "" {
			atWork(c.Process.Pid, row.open)
		}
		c.Process.Signal(s)
		finish(t, c)
		after, err := term.GetState(int(tty.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		// the terminal hangs up by itself when all that have it open have ended; what was written
		// before that may still wait for its reader
		late = time.AfterFunc(patience, func() { tty.Close() })
		text := heard + <-rest
		late.Stop()
		tty.Close()
		if statusOf(c) == 0 && row.open != "" && size < 256<<20 {
			continue // it was faster than the signal
		}
		sane(t, what, text)
		if n := len(regexp.MustCompile(`(?m)[: ]`+s.String()+`\s*$`).FindAllString(text, -1)); n > 1 {
			t.Errorf("%s: it says %d times that it was ended by %v:\n%s", what, n, s, text)
		}
		if got := statusOf(c); got != 128+int(s) {
			t.Errorf("%s: status %d\n%s", what, got, text)
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the terminal was %+v and is %+v", what, before, after)
		}
		for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h"} {
			if strings.LastIndex(text, on) > strings.LastIndex(text, off) {
				t.Errorf("%s: %q is not taken back:\n%q", what, on, text)
			}
		}
		b.clean(t, c)
		return
	}
}

// atWork waits until a process has a file open, or if there is none, until it has begun to wait, or
// until it has ended.
func atWork(pid int, open string) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, _ := strings.Cut(string(text), ") ")
		if err != nil || strings.HasPrefix(state, "Z") {
			return
		}
		if open == "" {
			// a program of Go that waits has threads; before Main catches signals, the kernel's own
			// effect of a signal gives the same status
			threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
			if len(threads) > 3 && strings.HasPrefix(state, "S") {
				return
			}
			continue
		}
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, l := range links {
			if to, _ := os.Readlink(l); filepath.Base(to) == open {
				return
			}
		}
	}
}

// misused wants one line that says what is wrong, and nothing that was begun.
func (b commandBench) misused(t *testing.T, w wrongUse) {
	c := b.command(w.args)
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	finish(t, c)
	text := errs.String()
	sane(t, w.args, text)
	if got := statusOf(c); got != w.status || !strings.Contains(text, w.says) || !strings.HasPrefix(text, "shoal") ||
		strings.Count(text, "\n") != 1 {
		t.Errorf("%s: status %d, want %d, and one line of %q:\n%s%s", w.args, got, w.status, w.says, out.String(), text)
	}
	b.clean(t, c)
}

func TestAProgramBesideEndsWithTheCommand(t *testing.T) {
	b := layOut(t)
	for _, name := range []string{"watch", "broker", "serve"} {
		row := commandRows[name]
		c := b.command(row.long)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readUntil(out, row.begun); err != nil {
			t.Error(err)
		}
		c.Process.Kill()
		finish(t, c) // which looks for what is left
	}
}

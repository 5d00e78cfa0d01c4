package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sources holds the source code of the native programs.
//
//go:embed native
var sources embed.FS

// A native is a program in another language, or using another library, that does a row's work in
// two processes of its own. It is built once per user if its build tool is installed.
type native struct {
	name   string
	source string   // file or directory
	tool   string   // build tool
	args   []string // run in a copy of the sources
	binary string   // output file
	env    []string
	slow   bool // the build takes minutes
}

// Native programs of the suite peers.
var (
	cFloor = native{name: "C", source: "native/floor.c", tool: "cc", args: []string{"-O2", "-o", "floor", "floor.c"},
		binary: "floor"}
	iceoryx2 = native{name: "iceoryx2 0.10.0", source: "native/iceoryx2", tool: "cargo",
		args: []string{"build", "--release", "--locked"}, binary: "target/release/shoal-peer-iceoryx2", slow: true}
	shmipc = native{name: "shmipc-go 0.2.0", source: "native/shmipc", tool: "go",
		args: []string{"build", "-o", "shmipc", "."}, binary: "shmipc", env: []string{"GOFLAGS=-mod=readonly"}}
)

// A program is a native that has been built.
type program struct {
	native
	path string
}

// build returns the program. It runs the build tool only if the user's cache directory has no
// program built from the same sources. In a quick run, it returns an error instead of starting a
// slow build.
func (n native) build(ctx context.Context, h *environment) (*program, error) {
	home, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	sum, err := n.hashSources()
	if err != nil {
		return nil, err
	}
	home = filepath.Join(home, "shoal", "bench")
	built := filepath.Join(home, filepath.Base(n.binary)+"-"+sum)
	if _, err := os.Stat(built); err == nil {
		return &program{n, built}, nil
	}
	if n.slow && h.quick {
		return nil, errors.New("not built yet; building takes minutes")
	}
	tool, err := exec.LookPath(n.tool)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(home, 0o777); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(home, "build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := n.copyTo(dir); err != nil {
		return nil, err
	}
	h.step("build " + n.name + ", once")
	cmd := exec.CommandContext(ctx, tool, n.args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), n.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, lastOf(out))
	}
	return &program{n, built}, os.Rename(filepath.Join(dir, n.binary), built)
}

func lastOf(out []byte) []byte { return out[max(0, len(out)-2000):] }

// hashSources returns a hash of the sources in 16 hexadecimal digits.
func (n native) hashSources() (string, error) {
	h := sha256.New()
	err := n.visit(func(name string, text []byte) error {
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}

// copyTo writes the sources to dir. The files of a Go module are embedded with the suffix .txt,
// because a module cannot embed another one.
func (n native) copyTo(dir string) error {
	return n.visit(func(name string, text []byte) error {
		to := filepath.Join(dir, strings.TrimSuffix(filepath.FromSlash(name), ".txt"))
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.WriteFile(to, text, 0o666))
	})
}

// visit calls f for each source file with its content and its name relative to the build
// directory, and stops at the first error.
func (n native) visit(f func(name string, text []byte) error) error {
	return fs.WalkDir(sources, n.source, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(p)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(p, n.source+"/")
		if p == n.source {
			name = path.Base(p)
		}
		return f(name, text)
	})
}

// A native program that takes longer than nativeLimit is killed and started again, at most
// nativeStarts times: the processes of shmipc-go now and then wait for each other for ever.
const (
	nativeLimit  = 2 * time.Minute
	nativeStarts = 3
)

// probe returns a probe that runs a work of the program on the processors of a pair. It measures
// rounds per second if unit is PerSecond, and ns per round otherwise. size is in bytes. The
// errors of a failed program wrap [ErrPeer]. probe returns nil if p is nil.
func (p *program) probe(h *environment, unit Unit, work string, size, rounds int) *Probe {
	if p == nil {
		return nil
	}
	return &Probe{Measure: func(ctx context.Context) (float64, error) {
		args := []string{work}
		for _, n := range []int{size, rounds, h.cpus[0], h.cpus[1]} {
			args = append(args, strconv.Itoa(n))
		}
		out, err := p.output(ctx, nativeLimit, args...)
		for n := 1; errors.Is(err, errNativeLimit) && n < nativeStarts; n++ {
			out, err = p.output(ctx, nativeLimit, args...)
		}
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			return 0, fmt.Errorf("%w: %s %s: %w: %s", ErrPeer, p.name, work, err, lastOf(failed.Stderr))
		}
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrPeer, err)
		}
		ns, err := strconv.ParseFloat(string(bytes.TrimSpace(out)), 64)
		if unit == PerSecond {
			return 1e9 / ns, err
		}
		return ns, err
	}}
}

// errNativeLimit is the error of a native program that was killed because it took too long.
var errNativeLimit = errors.New("it did not end in time")

// output runs the program and returns its standard output. When ctx ends or the program exceeds the
// limit, output kills its process group. The error is then the cause of ctx, or errNativeLimit.
func (p *program) output(ctx context.Context, limit time.Duration, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNativeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	setGroup(cmd)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, err
}

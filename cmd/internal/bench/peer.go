package bench

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// scripts are the Python scripts of the peers. They may import each other.
//
//go:embed peers/*.py
var scripts embed.FS

// A peer is a process that does the same work with other software. Each request is a line of
// JSON, and so is the answer. [startPeer] starts it. It answers one request at a time.
type peer struct {
	script string
	hello  hello
	cmd    *exec.Cmd
	dir    string // contains the script
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *lastLines
}

// peerExit is the time after which a canceled peer is killed.
const peerExit = 20 * time.Second

// hello is the first line of a peer.
type hello struct {
	Name     string              // with version
	Detail   string              // configuration
	Variants map[string][]string // implementations by operation
	Names    map[string]string   // names of variants that use another library, with its version
	Missing  map[string]string   // reasons why a library is missing, by library
}

func (h hello) String() string { return h.Name + " (" + h.Detail + ")" }

// peerWork is a request to a peer.
type peerWork struct {
	op     string
	ours   string // operation with our partner, if any
	Size   int
	Rounds int
	Args   []int // arguments of the operation
	once   bool
}

type request struct {
	Op      string `json:"op"`
	Variant string `json:"variant"`
	Size    int    `json:"size"`
	Rounds  int    `json:"rounds"`
	Args    []int  `json:"args"`
}

type answer struct {
	Value float64
	Error string
}

// startPeer starts the script for the suite s with the Python interpreter in opts. The caller
// must close the peer. The error wraps [ErrPeer] if the interpreter or the script cannot be run.
func startPeer(ctx context.Context, opts Options, s Suite) (_ *peer, err error) {
	python := opts.Python
	if python == "" {
		python = "python3"
	}
	dir, err := os.MkdirTemp("", "shoal-bench-")
	if err != nil {
		return nil, err
	}
	p := &peer{script: s.peer, dir: dir, stderr: new(lastLines)}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	// Python's child processes load the main script again, so it must be a file.
	folder, err := fs.Sub(scripts, "peers")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, folder); err != nil {
		return nil, err
	}
	var env []string
	if s.partner != nil {
		if env, err = s.partner(ctx, dir); err != nil {
			return nil, err
		}
	}
	p.cmd = exec.CommandContext(ctx, python, filepath.Join(dir, s.peer))
	p.cmd.Env = env
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	// At the end of its input the script stops the processes that it has started. Agents of Ray
	// would remain if the script were killed at once.
	p.cmd.Cancel, p.cmd.WaitDelay = p.in.Close, peerExit
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		return nil, fmt.Errorf("%w: %w; set another interpreter with --python", ErrPeer, err)
	}
	if err := p.read(&p.hello); err != nil {
		return nil, fmt.Errorf(
			"%w: %s cannot import torch (%w); install it with '%s -m pip install torch', or set another "+
				"interpreter with --python",
			ErrPeer, python, err, python)
	}
	return p, nil
}

// variants returns the names of the peer's implementations of an operation, or nil if it has none.
func (p *peer) variants(op string) []string { return p.hello.Variants[op] }

// name returns the name of a variant in results.
func (p *peer) name(variant string) string {
	if name, ok := p.hello.Names[variant]; ok {
		return name
	}
	return p.hello.Name + " " + variant
}

// missing returns the reason why the peer's interpreter cannot use a library. ok is false if it
// can. p may be nil.
func (p *peer) missing(library string) (reason string, ok bool) {
	if p == nil {
		return "", false
	}
	reason, ok = p.hello.Missing[library]
	return reason, ok
}

// probe returns a function that requests one measurement of w from the peer and returns its
// value. Only one request may be made at a time. The error wraps [ErrPeer], or is the error of
// the context if that is done.
func (p *peer) probe(w *peerWork, variant string) func(context.Context) (float64, error) {
	return func(ctx context.Context) (_ float64, err error) {
		defer func() {
			if err != nil && ctx.Err() != nil { // the input is closed
				err = ctx.Err()
			}
		}()
		op := w.op
		if variant == ourVariant {
			op = w.ours
		}
		line, err := json.Marshal(request{op, variant, w.Size, w.Rounds, w.Args})
		if err != nil {
			return 0, err
		}
		if _, err := p.in.Write(append(line, '\n')); err != nil {
			return 0, fmt.Errorf("%w: %w: %s", ErrPeer, err, p.stderr)
		}
		var a answer
		if err := p.read(&a); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrPeer, err)
		}
		if a.Error != "" {
			return 0, fmt.Errorf("%w: %s", ErrPeer, a.Error)
		}
		return a.Value, nil
	}
}

func (p *peer) read(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.cmd.Wait() // collect all of its error output
		p.cmd = nil
		return fmt.Errorf("peer exited: %s", p.stderr)
	}
	return json.Unmarshal(line, v)
}

// close closes the peer's input, which makes it exit, and waits for it. p may be nil.
func (p *peer) close() (err error) {
	if p == nil {
		return nil
	}
	if p.in != nil {
		p.in.Close()
	}
	if p.cmd != nil {
		err = p.cmd.Wait()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// lastLines is a writer that keeps the last 4 KiB. Its String method returns the last line, which
// is the message of a Python exception.
type lastLines struct{ text []byte }

func (l *lastLines) Write(b []byte) (int, error) {
	l.text = append(l.text, b...)
	if n := len(l.text); n > 4<<10 {
		l.text = append(l.text[:0], l.text[n-4<<10:]...)
	}
	return len(b), nil
}

func (l *lastLines) String() string {
	s := strings.TrimSpace(string(l.text))
	return s[strings.LastIndexByte(s, '\n')+1:]
}

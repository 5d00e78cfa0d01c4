package files

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/internal/safefile"
)

// untilDone does what may take long, but no longer than until the context ends; then there is
// nothing of a file that was being written.
func untilDone(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		safefile.DiscardReplacements()
		return context.Cause(ctx)
	}
}

// Options are those of both commands.
type Options struct {
	MaxBytes int64 // what a file may ask for; 0 for what it can fill and the process may take
	Strict   bool  // Convert leaves nothing behind, or fails
}

// Convert writes the tensors of the file from to the file to, whose names say their formats, and
// what was written to out; on log, where that is a terminal, a bar says how far it is. What the
// other format has no room for is left behind, and out names it. The error wraps ErrFormat, ErrOne,
// ErrSame, ErrStrict, or is what reading or writing says, a dtype that the format lacks among that,
// or is the cause of the context's end, after which the program ends; then nothing was written.
func Convert(ctx context.Context, out, log io.Writer, from, to string, o Options) error {
	return untilDone(ctx, func() error { return convert(out, log, from, to, o) })
}

func convert(out, log io.Writer, from, to string, o Options) error {
	source, err := Of(from)
	if err != nil {
		return err
	}
	target, err := Of(to)
	if err != nil {
		return err
	}
	if err := apart(from, to); err != nil {
		return err
	}
	c, err := source.load(log, from, o.MaxBytes)
	if err != nil {
		return err
	}
	size, err := c.writable(o.MaxBytes)
	if err != nil {
		return fmt.Errorf("convert %s: %w", from, err)
	}
	c.Strict = o.Strict
	stop := watch(log, "write "+to, size, transferred("wchar"))
	left, err := target.Save(to, c)
	if stop(); err != nil {
		return err
	}
	if _, err := words.Fprintf(out, "%s: %s, %s\n", to, words.Count(len(c.Tensors), "tensor"),
		words.Bytes(int64(size))); err != nil {
		return err
	}
	if len(left) > 0 {
		_, err = words.Fprintf(out, "left behind: %s\n", strings.Join(left, ", "))
	}
	return err
}

// raise is what to do about a limit.
const raise = "raise --max-bytes if that is meant"

// writable returns how many bytes the tensors have, unless they are expanded to more than the file
// could have, or one that is not in one piece does not fit into memory.
func (c Content) writable(most int64) (size int, err error) {
	stored := int64(0)
	for name, t := range c.Tensors {
		bytes := int64(t.Nbytes())
		if !t.IsContiguous() {
			if err := safefile.CheckSize(bytes, safefile.UnknownSize, most, raise); err != nil {
				return 0, fmt.Errorf("tensor %q: %w", name, err)
			}
		}
		size = int(min(int64(size)+bytes, math.MaxInt64/2))
		stored += int64(len(t.Storage().Bytes()))
	}
	return size, safefile.CheckPlausible(int64(size), stored, most, raise)
}

// apart says whether a file may be written while another one is read.
func apart(from, to string) error {
	reads, err := parts(from)
	if err != nil {
		return err
	}
	for _, path := range reads {
		old, err1 := os.Stat(path)
		now, err2 := os.Stat(to)
		if err1 == nil && err2 == nil && os.SameFile(old, now) || shardOf(path, to) {
			return fmt.Errorf("convert %s to %s: %w: write to another name, and rename that", from, to, ErrSame)
		}
	}
	return nil
}

// parts are the files that reading one opens.
func parts(path string) ([]string, error) {
	if !strings.HasSuffix(strings.ToLower(path), indexSuffix) {
		return []string{path}, nil
	}
	s, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return append(s.Files, path), nil
}

// indexSuffix ends the name of a file that lists others.
const indexSuffix = ".safetensors.index.json"

// shardOf reports whether a file has the name of one that is written beside an index.
func shardOf(path, index string) bool {
	model, ok := strings.CutSuffix(filepath.Base(index), indexSuffix)
	number, named := strings.CutPrefix(filepath.Base(path), model+"-")
	home, err1 := filepath.Abs(filepath.Dir(index))
	other, err2 := filepath.Abs(filepath.Dir(path))
	var i, n int
	count, _ := fmt.Sscanf(number, "%d-of-%d.safetensors", &i, &n)
	return ok && named && count == 2 && err1 == nil && err2 == nil && home == other
}

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

// runUntilDone calls do and returns its error. If ctx is done earlier, it removes partly written
// files and returns the cause; do then continues in the background, so the process must exit soon.
func runUntilDone(ctx context.Context, do func() error) error {
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

// Options apply to both [Inspect] and [Convert].
type Options struct {
	MaxBytes int64 // memory limit; 0 means the file's size and the process's limits
	Strict   bool  // Convert fails rather than drop anything
}

// Convert reads the tensors of the file from, writes them to the file to, and prints a summary to
// out. The formats are chosen by the file name extensions. If log is a terminal, a progress bar is
// drawn on it. Data that the target format cannot represent is dropped, and out lists it.
//
// The error wraps [ErrFormat], [ErrOne], [ErrSame] or [ErrStrict], or is an error of reading or
// writing, such as a dtype that the target format lacks. If ctx is done, Convert returns its cause,
// and the caller should exit. No file is written if Convert fails.
func Convert(ctx context.Context, out, log io.Writer, from, to string, o Options) error {
	return runUntilDone(ctx, func() error { return convert(out, log, from, to, o) })
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
	if err := checkNotOverwritten(from, to); err != nil {
		return err
	}
	c, err := source.load(log, from, o.MaxBytes)
	if err != nil {
		return err
	}
	size, err := c.checkWritable(o.MaxBytes)
	if err != nil {
		return fmt.Errorf("convert %s: %w", from, err)
	}
	c.Strict = o.Strict
	stop := startProgress(log, "write "+to, size, transferCounter("wchar"))
	left, err := target.Save(to, c)
	if stop(); err != nil {
		return err
	}
	if _, err := words.Fprintf(out, "%s: %s, %s\n", to, words.Count(len(c.Tensors), "tensor"),
		words.Bytes(int64(size))); err != nil {
		return err
	}
	if len(left) > 0 {
		_, err = words.Fprintf(out, "omitted: %s\n", strings.Join(left, ", "))
	}
	return err
}

// raise is the advice that errors about the memory limit give.
const raise = "raise --max-bytes if this is intended"

// checkWritable returns the total size of the tensors in bytes. It returns an error if they are
// expanded to more than the file can plausibly contain, or if a tensor that must be copied because
// it is not contiguous exceeds the memory limit, which is most bytes.
func (c Content) checkWritable(most int64) (size int, err error) {
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

// checkNotOverwritten returns an error that wraps [ErrSame] if writing to would overwrite one of
// the files that reading from opens. It also returns an error if from is an index that cannot be
// read.
func checkNotOverwritten(from, to string) error {
	reads, err := listFiles(from)
	if err != nil {
		return err
	}
	for _, path := range reads {
		old, err1 := os.Stat(path)
		now, err2 := os.Stat(to)
		if err1 == nil && err2 == nil && os.SameFile(old, now) || shardOf(path, to) {
			return fmt.Errorf("convert %s to %s: %w: write to another name and rename it", from, to, ErrSame)
		}
	}
	return nil
}

// listFiles returns the files that reading path opens: the file itself, or the index and its
// shards.
func listFiles(path string) ([]string, error) {
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

// indexSuffix is the suffix of an index of several safetensors files.
const indexSuffix = ".safetensors.index.json"

// shardOf reports whether path has the name of a shard that would be written beside index.
func shardOf(path, index string) bool {
	model := filepath.Base(index)
	ok := strings.HasSuffix(strings.ToLower(model), indexSuffix)
	if ok {
		model = model[:len(model)-len(indexSuffix)]
	}
	number, named := strings.CutPrefix(filepath.Base(path), model+"-")
	home, err1 := filepath.Abs(filepath.Dir(index))
	other, err2 := filepath.Abs(filepath.Dir(path))
	var i, n int
	count, _ := fmt.Sscanf(number, "%d-of-%d.safetensors", &i, &n)
	return ok && named && count == 2 && err1 == nil && err2 == nil && home == other
}

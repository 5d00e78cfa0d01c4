package files

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/internal/replace"
)

// untilDone does what may take long, but no longer than until the context ends; then there is nothing of a file that was being written.
func untilDone(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		replace.DiscardAll()
		return context.Cause(ctx)
	}
}

// Convert writes the tensors of the file from to the file to, whose names say their formats, and what was written to out; on log, where
// that is a terminal, a bar says how far it is. What the other format has no room for is
// left behind, and out names it. The error wraps ErrFormat, ErrOne, or is what reading or writing says, a dtype that the format lacks
// among that, or is the cause of the context's end, after which the program ends; then nothing was written.
func Convert(ctx context.Context, out, log io.Writer, from, to string) error {
	return untilDone(ctx, func() error { return convert(out, log, from, to) })
}

func convert(out, log io.Writer, from, to string) error {
	source, err := Of(from)
	if err != nil {
		return err
	}
	target, err := Of(to)
	if err != nil {
		return err
	}
	c, err := source.load(log, from)
	if err != nil {
		return err
	}
	size := 0
	for _, t := range c.Tensors {
		size += t.Nbytes()
	}
	stop := watch(log, "write "+to, size, transferred("wchar"))
	left, err := target.Save(to, c)
	if stop(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s: %s, %s\n", to, words.Count(len(c.Tensors), "tensor"), words.Bytes(int64(size))); err != nil {
		return err
	}
	if len(left) > 0 {
		_, err = fmt.Fprintf(out, "left behind: %s\n", strings.Join(left, ", "))
	}
	return err
}

package hogwild

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
)

// downloader is a separate program, because package net would make this one dynamically linked.
const downloader = "shoal-download"

// downloadFiles fetches the missing MNIST files. The error wraps [ErrDownload].
func (o *Options) downloadFiles(ctx context.Context) error {
	var args []string
	if o.Mirror != "" {
		args = append(args, "-mirror", o.Mirror)
	}
	c, err := beside.Command(ctx, downloader, append(args, "--", o.Data)...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDownload, err)
	}
	o.printNote("%q", c.Args)
	c.Stdout, c.Stderr = o.Stderr, o.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: MNIST to %s: %s: %w", ErrDownload, o.Data, downloader, err)
	}
	return nil
}

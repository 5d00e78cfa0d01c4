package hogwild

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// downloader is a program of its own: this one would be dynamic with package net.
const downloader = "shoal-download"

// download fetches the files of MNIST that the folder lacks.
func (o *Options) download(ctx context.Context) error {
	command, err := findDownloader()
	if err != nil {
		return err
	}
	if o.Mirror != "" {
		command = append(command, "-mirror", o.Mirror)
	}
	command = append(command, "--", o.Data)
	o.note("%q", command)
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdout, c.Stderr = o.Stderr, o.Stderr
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(os.Interrupt) }, 10*time.Second
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: MNIST to %s: %s ended with %w", ErrDownload, o.Data, downloader, err)
	}
	return nil
}

// findDownloader returns how to run the downloader: beside this program, on the PATH, or from its source, as go run ran this one.
func findDownloader() (command []string, err error) {
	if self, err := os.Executable(); err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), downloader)); err == nil {
			return []string{beside}, nil
		}
	}
	if path, err := exec.LookPath(downloader); err == nil {
		return []string{path}, nil
	}
	const source = "github.com/shoal-mp/shoal/cmd/" + downloader
	if tool, err := exec.LookPath("go"); err == nil {
		return []string{tool, "run", source}, nil
	}
	return nil, fmt.Errorf("%w: the program %s is neither beside this one nor on the PATH: go install %s@latest brings it", ErrDownload, downloader, source)
}

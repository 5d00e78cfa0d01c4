//go:build !linux

package shoal

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// startChild returns an error that wraps errors.ErrUnsupported.
func startChild(b launch) (*child, error) {
	return nil, fmt.Errorf("shoal: processes need Linux: %w", errors.ErrUnsupported)
}

func drain(r *os.File, w io.Writer, buf []byte) {}

type death struct{}

func (death) wait() error    { return errors.ErrUnsupported }
func (death) hasEnded() bool { return true }
func (death) close()         {}

func signalOf(s *os.ProcessState) os.Signal { return nil }

func initWorker() *worker { return nil }

func childrenOf() []string { return nil }

func openInherited() (struct{}, error) { return struct{}{}, errors.ErrUnsupported }

//go:build !linux

package sys

import (
	"context"
	"os"
	"syscall"
)

// A Pidfd is a handle to one process. It needs Linux: [OpenPidfd] and [PidfdFromFile] return an
// error on other systems.
type Pidfd struct{}

// OpenPidfd returns an error that wraps [errors.ErrUnsupported]: a handle to a process needs
// Linux.
func OpenPidfd(pid int) (*Pidfd, error) { return nil, unsupportedError("pidfd_open") }

// PidfdFromFile returns an error that wraps [errors.ErrUnsupported]: a handle to a process
// needs Linux.
func PidfdFromFile(f *os.File) (*Pidfd, error) { return nil, unsupportedError("pidfd_open") }

// Wait returns an error that wraps [errors.ErrUnsupported]: a handle to a process needs Linux.
func (p *Pidfd) Wait(ctx context.Context) error { return unsupportedError("pidfd") }

// Exited returns an error that wraps [errors.ErrUnsupported]: a handle to a process needs
// Linux.
func (p *Pidfd) Exited() (bool, error) { return false, unsupportedError("pidfd") }

// Signal returns an error that wraps [errors.ErrUnsupported]: a handle to a process needs
// Linux.
func (p *Pidfd) Signal(sig syscall.Signal) error { return unsupportedError("pidfd_send_signal") }

// File returns nil: a handle to a process needs Linux.
func (p *Pidfd) File() *os.File { return nil }

// Close returns an error that wraps [errors.ErrUnsupported]: a handle to a process needs Linux.
func (p *Pidfd) Close() error { return unsupportedError("pidfd") }

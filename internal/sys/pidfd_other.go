//go:build !linux

package sys

import (
	"context"
	"os"
	"syscall"
)

// A Pidfd needs Linux. No value of it can be made on other systems.
type Pidfd struct{}

// OpenPidfd needs Linux.
func OpenPidfd(pid int) (*Pidfd, error) { return nil, unsupportedError("pidfd_open") }

// PidfdFromFile needs Linux.
func PidfdFromFile(f *os.File) (*Pidfd, error) { return nil, unsupportedError("pidfd_open") }

// Wait needs Linux.
func (p *Pidfd) Wait(ctx context.Context) error { return unsupportedError("pidfd") }

// Exited needs Linux.
func (p *Pidfd) Exited() (bool, error) { return false, unsupportedError("pidfd") }

// Signal needs Linux.
func (p *Pidfd) Signal(sig syscall.Signal) error { return unsupportedError("pidfd_send_signal") }

// File needs Linux.
func (p *Pidfd) File() *os.File { return nil }

// Close needs Linux.
func (p *Pidfd) Close() error { return unsupportedError("pidfd") }

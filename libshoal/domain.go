//go:build cgo && linux

package main

// #include "shoal.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
)

// process is the membership of this process in its domain.
var process struct {
	ready atomic.Pointer[arena.Domain] // the domain, once it is set up
	mu    sync.Mutex
	left  bool // shoal_leave was called
}

// requireDomain makes a domain with the default options if this process has none. Functions that
// create objects must call it first. The error wraps [ipc.ErrClosed] after shoal_leave.
func requireDomain() error {
	if process.ready.Load() != nil {
		return nil
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.left {
		return fmt.Errorf("%w: this process has left its domain", ipc.ErrClosed)
	}
	first := arena.Current() == nil
	d, err := arena.Default()
	if err != nil {
		return err
	}
	setUpDomain(d, first)
	return nil
}

// setUpDomain makes d the domain of this library. first reports whether this process made d; it
// then answers shoal ps. The caller must hold process.mu.
func setUpDomain(d *arena.Domain, first bool) {
	if process.ready.Swap(d) == nil && first {
		go d.Serve() // nothing else depends on it
	}
}

// createDomain makes the domain of this process. The error wraps errDomain if the process has or
// had one.
func createDomain(o shm.Options) error {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.left || arena.Current() != nil {
		return fmt.Errorf("create domain: %w: this process has one already: call shoal_create before other "+
			"functions", errDomain)
	}
	d, err := arena.New(o)
	if err != nil {
		return fmt.Errorf("create domain: %w", err)
	}
	if !arena.SetFirst(d) {
		return errors.Join(fmt.Errorf("create domain: %w: another thread made one", errDomain), d.Close())
	}
	setUpDomain(d, true)
	return nil
}

// listen lets other processes join this domain at address, if they know the key. The connections
// serve no other purpose. The caller must close the listener.
func listen(address string, key []byte) (*ipc.Listener[int], error) {
	if err := requireDomain(); err != nil {
		return nil, err
	}
	l, err := ipc.Listen[int](address, key)
	if err != nil {
		return nil, err
	}
	go closeConns(l)
	return l, nil
}

// closeConns accepts and closes the connections of a listener until it is closed.
func closeConns[T any](l *ipc.Listener[T]) {
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		c.Close()
	}
}

// join joins the domain of the process that listens at address. The error wraps errDomain if
// this process has a domain already, [ipc.ErrClosed] after shoal_leave, [ipc.ErrPeer] if the
// listener ends the connection, and [shm.ErrNamespace] if its domain cannot be joined.
func join(ctx context.Context, address string, key []byte) error {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.left {
		return fmt.Errorf("join: %w: this process has left its domain", ipc.ErrClosed)
	}
	had := arena.Current() != nil
	var refused error
	c, err := ipc.Dial[int](arena.WithJoinError(ctx, &refused), address, key)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ipc.ErrPeer, err)
	}
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	defer c.Close()
	switch d := arena.Current(); {
	case c.Shared():
		setUpDomain(d, false)
		return nil
	case had || d != nil:
		return fmt.Errorf("join %s: %w: this process has a domain already: join before other functions",
			address, errDomain)
	}
	if refused == nil {
		refused = fmt.Errorf("%w: its domain cannot be joined", shm.ErrNamespace)
	}
	return fmt.Errorf("join: %w", refused)
}

// joinByToken joins a domain at the address of an arena listener. It does nothing if this
// process has a domain, even another one. The error wraps [ipc.ErrClosed] after shoal_leave.
func joinByToken(ctx context.Context, address string, token arena.Token) error {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.left {
		return fmt.Errorf("%w: this process has left its domain", ipc.ErrClosed)
	}
	if d := arena.Current(); d != nil {
		setUpDomain(d, false)
		return nil
	}
	d, err := arena.Join(ctx, address, token)
	if err != nil {
		return err
	}
	if !arena.SetFirst(d) {
		d.Close()
	}
	setUpDomain(arena.Current(), false)
	return nil
}

// leaveDomain closes all objects and leaves the domain, for good. Before that it waits up to
// timeout for the imports of exports and for forked children. It returns the errors of closing.
func leaveDomain(timeout time.Duration) error {
	waitUntilClaimed(timeout)
	process.mu.Lock()
	process.left = true
	process.mu.Unlock()
	exports.close()
	var errs []error
	for _, h := range handles.all() {
		if r, err := handles.remove(h); err == nil {
			errs = append(errs, r.object.release())
		}
	}
	forks.releaseAll()
	if d := process.ready.Load(); d != nil {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// waitUntilClaimed waits until nothing is exported and no fork is open, but no longer than
// timeout, which may be forever.
func waitUntilClaimed(timeout time.Duration) {
	begun := time.Now()
	for pause := time.Millisecond; exports.count()+forks.countForks() > 0; pause = min(2*pause, 20*time.Millisecond) {
		if timeout != forever && time.Since(begun) >= timeout {
			return
		}
		time.Sleep(pause)
	}
}

const mostName = 64 // bytes of a process name

// setProcessName sets the name of this process for ps and the commands of Shoal. The error wraps
// errArgument unless name has 1 to 64 bytes of UTF-8 without control characters.
func setProcessName(name string) error {
	control := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
	if name == "" || len(name) > mostName || control || !utf8.ValidString(name) {
		return fmt.Errorf("set process name %q: %w: want 1 to %d bytes of UTF-8 without control characters", name,
			errArgument,
			mostName)
	}
	f, err := sys.OpenProcessName()
	if err != nil {
		return fmt.Errorf("set process name: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString(name); err != nil {
		return fmt.Errorf("set process name: %w", err)
	}
	return nil
}

// readStats returns the figures of the domain, or zeros if this process has none.
func readStats() shm.Stats {
	if d := arena.Current(); d != nil {
		return d.Stats()
	}
	return shm.Stats{}
}

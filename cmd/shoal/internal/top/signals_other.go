//go:build !unix

package top

import (
	"context"
	"os"
)

func notifySignals() chan os.Signal { return nil }

func interruptGroup() {}

func (t *terminal) stop() error { return nil }

func (t *terminal) handleSignal(context.Context, os.Signal) error { return nil }

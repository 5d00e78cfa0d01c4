//go:build !unix

package top

import (
	"context"
	"os"
)

func catch() chan os.Signal { return nil }

func interrupt() {}

func (t *terminal) stop() error { return nil }

func (t *terminal) obey(context.Context, os.Signal) error { return nil }

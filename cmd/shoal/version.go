package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCommand is shoal version.
type versionCommand struct{}

// Run prints what a report of a bug needs.
func (c *versionCommand) Run(context.Context) error {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program was built without modules, so it has no version")
	}
	fmt.Printf("shoal %s %s %s/%s\n", build.Main.Version, build.GoVersion, runtime.GOOS, runtime.GOARCH)
	return nil
}

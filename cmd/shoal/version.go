package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCommand implements shoal version.
type versionCommand struct{}

// Run prints the version, the Go release and the platform, as a bug report should include them.
func (c *versionCommand) Run(context.Context) error {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("no version: this program was built without module support")
	}
	fmt.Printf("shoal %s %s %s/%s\n", build.Main.Version, build.GoVersion, runtime.GOOS, runtime.GOARCH)
	return nil
}

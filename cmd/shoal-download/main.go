// Command shoal-download fetches the original files of MNIST into a folder: what shoal hogwild
// --download runs.
//
//	shoal-download [-mirror URL] DIR
//
// It is a program of its own because package net links the C library where there is a C compiler,
// and then each of a program's workers loads it before its first statement. Run it again after a
// broken connection: it goes on from there.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/data/download"
)

func main() {
	mirror := flag.String("mirror", download.Mirror, "`URL` of a directory that has the four files")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: shoal-download [-mirror URL] DIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := fetch(flag.Arg(0), *mirror); err != nil {
		fmt.Fprintln(os.Stderr, "shoal-download:", words.CleanError(err))
		os.Exit(1)
	}
}

// fetch says the name of each file that it fetches or finds, until it is interrupted.
func fetch(dir, mirror string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	said := ""
	return download.MNIST(ctx, dir, mirror, func(name string, _, total int64) {
		if said != name {
			said = name
			fmt.Printf("%s: %.1f MiB\n", name, float64(total)/(1<<20))
		}
	})
}

// Command shoal-download downloads the original MNIST files to a directory. "shoal hogwild
// --download" executes it.
//
//	shoal-download [-mirror URL] DIR
//
// It prints the name and size of each file. After a broken connection, run it again: it resumes the
// download. It is a separate program because package net links the C library where a C compiler is
// installed, and then every worker process would load that library at start.
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
	mirror := flag.String("mirror", download.Mirror, "`URL` of a directory with the four files")
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

// fetch downloads MNIST to dir and prints the name and size of each file. An interrupt cancels it.
func fetch(dir, mirror string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	said := ""
	return download.MNIST(ctx, dir, download.Options{Mirror: mirror, Progress: func(name string, _, total int64) {
		if said != name {
			said = name
			fmt.Printf("%s: %.1f MiB\n", name, float64(total)/(1<<20))
		}
	}})
}

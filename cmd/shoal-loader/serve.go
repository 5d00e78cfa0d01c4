package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/torch"
)

// settings holds the flags of the subcommand serve.
type settings struct {
	listen, keyFile string
	secure          secured
	loader          data.Options
	host            service.HostOptions
	cache           int // MiB
	every           time.Duration
}

// serve runs a data host until it receives SIGINT or SIGTERM. Errors about flags wrap
// [errOption], and so do errors about options.
func serve(args []string) (err error) {
	var s settings
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	f.StringVar(&s.listen, "listen", ":7070", "`address` to listen on; port 0 means any free port")
	f.StringVar(&s.keyFile, "key-file", "", "`file` with the key shared by data hosts and trainers")
	f.StringVar(&s.secure.Cert, "cert", "", "`file` with the TLS certificate (default a new self-signed one)")
	f.StringVar(&s.secure.Key, "cert-key", "", "`file` with the certificate's key")
	f.StringVar(&s.secure.Authority, "ca", "",
		"`file` with the CA certificates that verify trainers, which must then present a certificate")
	f.BoolVar(&s.host.Unencrypted, "unencrypted", false,
		"no TLS, which trainers must set too; only for networks of trusted machines")
	f.IntVar(&s.loader.BatchSize, "batch-size", 1, "samples per batch")
	f.BoolVar(&s.loader.Shuffle, "shuffle", false, "shuffle the samples in each epoch")
	f.Uint64Var(&s.loader.Seed, "seed", 0, "seed of the order and of random transforms")
	f.BoolVar(&s.loader.DropLast, "drop-last", false, "drop the last batch of an epoch if it is smaller")
	f.IntVar(&s.loader.Parts, "parts", 16, "number of parts in which shards are read, at most the number of files")
	f.IntVar(&s.loader.Workers, "workers", runtime.GOMAXPROCS(0), "number of goroutines that load samples")
	f.IntVar(&s.cache, "cache", 0, "`MiB` of shared memory to cache batches that other trainers will request")
	f.StringVar(&s.host.Name, "name", "", "name of the data set, the same on all data hosts (default a hash of "+
		"its first sample)")
	f.StringVar(&s.host.Ledger, "ledger", "",
		"`file` for the batches acknowledged by Dynamic trainers, on the data host that they name first")
	f.DurationVar(&s.every, "every", 10*time.Second, "interval between statistics lines; 0 disables them")
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "serve [flags] NAME [OPTIONS]: NAME and OPTIONS select a data set; run the "+
			"program without arguments for a list\n")
		f.PrintDefaults()
	}
	beside.ParseFlags("shoal-loader", f, args)
	if err := s.check(f.Args()); err != nil {
		return err
	}
	if s.host.Key, err = readKey(s.keyFile); err != nil {
		return err
	}
	if s.host.TLS, err = s.secure.hostConfig(); err != nil {
		return err
	}
	s.host.Cache = s.cache << 20
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	name, options := f.Arg(0), cmp.Or(f.Arg(1), "{}")
	if name == "shards" {
		l, err := s.streamLoader(options)
		if err != nil {
			return err
		}
		return s.serve(ctx, l, fmt.Sprintf("%s in %d parts", name, s.loader.Parts))
	}
	set, err := openSet(ctx, name, options)
	if err != nil {
		return err
	}
	if c, ok := set.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	if t, ok := set.(*torch.Tolerant); ok {
		s.loader.Retries, set = t.Retries, t.Dataset
		if t.Skip != nil {
			s.loader.Skip = func(err *data.SampleError) bool { return t.Skip(err.Index, err.Err) }
		}
	}
	l := data.NewLoader(set, s.loader)
	return s.serve(ctx, l, fmt.Sprintf("%d samples of %s in %d batches", set.Len(), name, l.Len()))
}

// check validates the flags. args must be the name of a data set, optionally followed by its
// options. The error wraps [errOption].
func (s settings) check(args []string) error {
	switch {
	case len(args) == 0:
		return fmt.Errorf("%w: missing data set, want for example: serve -key-file key -batch-size 64 images "+
			"'{\"root\": \"train\"}'",
			errOption)
	case len(args) > 2:
		return fmt.Errorf("%w: unexpected argument %q, want only a name and options: see -help",
			errOption, args[2])
	case s.loader.BatchSize < 1 || s.loader.Workers < 1:
		return fmt.Errorf("%w: -batch-size %d, -workers %d: want at least 1", errOption, s.loader.BatchSize,
			s.loader.Workers)
	case s.loader.Parts < 1 || s.loader.Parts > mostParts:
		return fmt.Errorf("%w: -parts %d: want 1 to %d", errOption, s.loader.Parts, mostParts)
	case args[0] == "shards" && s.loader.Shuffle:
		return fmt.Errorf("%w: -shuffle does not apply to shards: use their option shuffle: {\"paths\": …, "+
			"\"shuffle\": 1000}",
			errOption)
	case s.every < 0 || s.cache < 0:
		return fmt.Errorf("%w: -every %v, -cache %d: want at least 0", errOption, s.every, s.cache)
	}
	return nil
}

// mostParts is the maximum number of parts of a stream.
const mostParts = 1 << 18

// streamLoader returns a loader of shards, which the caller must close. options must be a JSON
// object; see [parseOptions]. An option that only makes sense for trainers is an error. Errors
// about options wrap [errOption].
func (s settings) streamLoader(options string) (*data.Loader, error) {
	args, err := parseOptions(options)
	if err != nil {
		return nil, err
	}
	args, skip, retries, err := splitTolerance(args)
	if err != nil {
		return nil, err
	}
	if skip {
		sk := newSkips(torch.Worker{})
		s.loader.Skip = func(err *data.SampleError) bool { return sk.logSample(err.Index, err.Err) }
	}
	s.loader.Retries = retries
	shards, err := shardsOf(torch.Worker{Workers: 1, Args: args})
	if err == nil && shards.World > 1 {
		err = fmt.Errorf("%w: rank and world apply to trainers, not to a data host", errOption)
	}
	if err == nil && (shards.Seed != nil || shards.Epoch != 0) {
		err = fmt.Errorf("%w: seed and epoch apply to trainers: use the flag -seed", errOption)
	}
	if err != nil {
		return nil, err
	}
	return data.NewStreamLoader(shards.Stream, s.loader), nil
}

// serve serves the loader's batches until ctx is done, when it returns nil, and prints
// statistics every interval in which they have changed. The first line contains the description
// of the data set. serve closes l.
func (s settings) serve(ctx context.Context, l *data.Loader, what string) error {
	defer l.Close()
	h, err := service.Listen(l, s.listen, s.host)
	if err != nil {
		return err
	}
	defer h.Close()
	fmt.Printf("serving %s at %s\n", what, h.Addr())
	var tick <-chan time.Time
	if s.every > 0 {
		t := time.NewTicker(s.every)
		defer t.Stop()
		tick = t.C
	}
	for last := h.Stats(); ; {
		select {
		case <-tick:
			now := h.Stats()
			if now.Batches > last.Batches || now.Trainers != last.Trainers {
				fmt.Println(now.Since(last))
			}
			last = now
		case <-ctx.Done():
			fmt.Println("total:", h.Stats())
			return nil
		}
	}
}

// openSet opens a map-style data set by its name and its options in JSON, in the same way as a
// PyTorch worker does. If the data set is an [io.Closer], the caller must close it. The error wraps
// [errOption] if there is no such data set, or if an option is invalid.
func openSet(ctx context.Context, name, options string) (data.Dataset, error) {
	open := sets[name]
	if open == nil {
		return nil, fmt.Errorf("%w: unknown data set %q: run the program without arguments for a list",
			errOption, name)
	}
	args, err := parseOptions(options)
	if err != nil {
		return nil, err
	}
	return tolerateErrors(open)(ctx, torch.Worker{Workers: 1, Args: args})
}

// readKey reads a key from a file, without the trailing newline. A missing path and an empty key
// are errors that wrap [errOption].
func readKey(path string) ([]byte, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: missing key file: create one with head -c 32 /dev/urandom | base64 >key",
			errOption)
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if key = bytes.TrimRight(key, "\r\n"); len(key) == 0 {
		return nil, fmt.Errorf("%w: key file %s is empty", errOption, path)
	}
	return key, nil
}

// openService opens the data set of the remote data hosts that the options of w name.
func openService(ctx context.Context, w torch.Worker) (data.Dataset, error) {
	args := struct {
		Hosts    any     `torch:"hosts"`
		Key      string  `torch:"key"`
		Patience float64 `torch:"patience"`
		Cert     string  `torch:"cert"`
		CertKey  string  `torch:"cert_key"`
		CA       string  `torch:"ca"`
		Name     string  `torch:"server_name"`

		Unencrypted bool `torch:"unencrypted"`
	}{}
	if err := storeOptions(w, &args); err != nil {
		return nil, err
	}
	hosts, err := list{args.Hosts}.stringList("hosts")
	if err != nil {
		return nil, err
	}
	key, err := readKey(args.Key)
	if err != nil {
		return nil, fmt.Errorf("option key: %w", err)
	}
	config, err := secured{args.Cert, args.CertKey, args.CA}.trainerConfig(args.Name)
	if err != nil {
		return nil, err
	}
	return service.OpenDataset(ctx, service.Options{Key: key, TLS: config, Unencrypted: args.Unencrypted,
		Patience: time.Duration(args.Patience * float64(time.Second))}, hosts...)
}

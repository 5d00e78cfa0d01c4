package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/shoal-mp/shoal/nats/broker"
)

// lifeline is an environment variable. If it is set, the node stops when its standard input reaches
// EOF, which happens when the process that started the node exits.
const lifeline = "SHOAL_BROKER_LIFELINE"

// told is the interval between reports of the node's statistics.
const told = 10 * time.Second

// serve runs one node until ctx is done, when it returns the error of closing it. It prints the
// node's URL on standard output, where a supervisor must read it.
func (s *settings) serve(ctx context.Context) error {
	if os.Getenv(lifeline) != "" {
		tied, cancel := context.WithCancel(ctx)
		ctx = tied
		go func() {
			io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	s.Told = func(what string) { fmt.Fprintln(os.Stderr, "shoal broker:", what) }
	b, err := broker.Start(s.Options)
	if err != nil {
		return err
	}
	fmt.Println(b.URL())
	if !s.quiet {
		fmt.Fprintf(os.Stderr, "shoal broker: data in %s, %s; press Ctrl-C to stop\n", b.Dir(), s.replicaText())
		s.printStats(ctx, b)
	}
	<-ctx.Done()
	return b.Close()
}

func (s *settings) replicaText() string {
	if s.Cluster == "" {
		return "1 replica"
	}
	return fmt.Sprintf("node %s of a cluster with %d others, 3 replicas", s.Name, len(s.Routes))
}

// printStats prints the node's statistics at regular intervals if they have changed. It returns
// when ctx is done.
func (s *settings) printStats(ctx context.Context, b *broker.Broker) {
	t := time.NewTicker(told)
	defer t.Stop()
	for before := (broker.Stats{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := b.Stats()
		if now != before {
			seconds := int64(told / time.Second)
			fmt.Fprintf(os.Stderr, "shoal broker: %d clients, %d streams, %d messages, %.1f MiB; %d/s in, %d/s out\n",
				now.Connections, now.Streams, now.Messages, float64(now.Bytes)/(1<<20),
				(now.In-before.In)/seconds, (now.Out-before.Out)/seconds)
		}
		before = now
	}
}

// Feed is a program for tests of the page: a trainer that takes the batches of a loader, whose
// workers are processes and too slow for it. It runs until it is interrupted.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// slow is samples that take a while, some more than others.
type slow int

func init() { codec.RegisterType[slow]("feed.slow") }

func (n slow) Len() int { return int(n) }

func (n slow) Get(_ context.Context, i int) (data.Sample, error) {
	time.Sleep(time.Duration(4+i*7%5) * time.Millisecond)
	return data.Sample{tensor.Full(tensor.Uint8, float64(i%200), 3, 32, 32)}, nil
}

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	l := data.NewLoader(slow(3200), data.Options{BatchSize: 16, Workers: 3, Kind: data.Processes, Persistent: true, Shuffle: true})
	defer l.Close()
	for n := 0; ctx.Err() == nil; {
		for batch, err := range l.Batches(ctx) {
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			if n++; n == 1 {
				fmt.Println("feeds")
			}
			time.Sleep(12 * time.Millisecond) // the work of a step
			batch.Close()
		}
	}
	return nil
}

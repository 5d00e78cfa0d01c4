// Command pipe connects two processes with a pipe: one sends numbers, and the other answers with
// text. When the first closes its end, the loop of the other one ends.
//
//	go run ./examples/pipe
//
// It prints the answers.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

var answer = shoal.Register("answer", func(ctx context.Context, _ int, side *ipc.PipeEnd[string, int]) error {
	defer side.Close()
	for n, err := range side.All(ctx) { // until the other end is closed everywhere
		if err != nil {
			return err
		}
		if err := side.Send(ctx, fmt.Sprintf("%d squared is %d", n, n*n)); err != nil {
			return err
		}
	}
	return nil
})

var ask = shoal.Register("ask", func(ctx context.Context, _ int, side *ipc.PipeEnd[int, string]) error {
	defer side.Close()
	for n := 1; n <= 3; n++ {
		if err := side.Send(ctx, n); err != nil {
			return err
		}
		text, err := side.Recv(ctx)
		if err != nil {
			return err
		}
		fmt.Println(text)
	}
	return nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	here, there, err := ipc.Pipe[int, string]()
	if err != nil {
		return err
	}
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 2})
	defer g.Close()
	ask.Go(g, here)
	answer.Go(g, there)
	here.Close() // the workers have their own ends; an open one here would keep the loop waiting
	there.Close()
	return g.Wait()
}

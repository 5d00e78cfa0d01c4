// Pipe is the lesson of two that talk: one process asks, with numbers, and the other answers, with
// text. When the asking one closes its side, the other one's loop ends.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

var answer = shoal.Register("answer", func(ctx context.Context, _ int, side *ipc.PipeEnd[string, int]) error {
	defer side.Close()
	for n, err := range side.All(ctx) { // until nobody has the other side
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
	here.Close() // the processes have their own sides; who kept one would keep the other waiting
	there.Close()
	return g.Wait()
}

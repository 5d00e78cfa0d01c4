// Command a3c trains an agent with asynchronous actor-critic: four processes each balance a pole on
// a cart and update one shared network with a shared RMSprop, without a lock (Mnih et al., 2016).
//
//	go run ./examples/a3c
//
// It prints the mean return at intervals, and finally the number of episodes until the task was
// solved.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

const (
	solved   = 195    // mean return over 100 episodes
	patience = 20_000 // episodes
)

type job struct {
	Net     *actorCritic
	Step    *optim.RMSprop
	Returns *ipc.Sender[int]
}

var play = shoal.Register("play", func(ctx context.Context, rank int, j job) error {
	p := newPlayer(rank, j)
	for {
		if ended := p.rollOut(); ended && j.Returns.Put(ctx, p.game.steps) != nil {
			return nil // the receiver is closed
		}
		p.updateNetwork()
	}
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	g := tensor.NewGenerator(1)
	net := &actorCritic{nn.NewLinear(4, 128, g), nn.NewLinear(128, 2, g), nn.NewLinear(128, 1, g)}
	step := optim.NewRMSprop(nn.Params(net), optim.RMSpropOptions{LR: 1e-3})
	if err := step.Share(); err != nil {
		return err
	}
	returns, err := ipc.NewQueue[int](100)
	if err != nil {
		return err
	}
	group, err := play.Start(ctx, 4, job{net, step, returns.Sender()}, shoal.Options{})
	if err != nil {
		return err
	}
	defer group.Close()
	defer returns.Close()
	var last [100]int
	for sum, n := 0, 1; n <= patience; n++ {
		r, err := returns.Get(ctx)
		if err != nil {
			return err
		}
		sum, last[n%100] = sum+r-last[n%100], r
		if n%100 == 0 {
			fmt.Printf("episode %5d: mean return %5.1f\n", n, float64(sum)/100)
		}
		if n >= 100 && sum >= solved*100 {
			fmt.Printf("solved in %d episodes: mean return %.1f\n", n, float64(sum)/100)
			return nil
		}
	}
	return fmt.Errorf("not solved in %d episodes", patience)
}

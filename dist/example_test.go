package dist_test

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

var addUp = shoal.Register("add up", func(ctx context.Context, rank int, g *dist.Group) error {
	defer g.Close()
	if err := g.Join(rank); err != nil {
		return err
	}
	t := tensor.Full(tensor.Float32, float64(rank+1), 2)
	if err := g.AllReduce(ctx, dist.Sum, t); err != nil {
		return err
	}
	fmt.Println(t) // the same bits in every rank
	return nil
})

func Example() {
	g, err := dist.NewGroup(2) // it travels, as a queue does
	if err != nil {
		panic(err)
	}
	defer g.Close()
	if err := addUp.Spawn(context.Background(), 2, g); err != nil {
		panic(err)
	}
	// Output:
	// tensor([3., 3.])
	// tensor([3., 3.])
}

// Each process of a job calls Init, however the job was started: shoal run -n 4 -- ./program,
// mpirun, srun, torchrun, or nothing, as here.
func ExampleInit() {
	ctx := context.Background()
	g, err := dist.Init(ctx)
	if err != nil {
		fmt.Println(err) // it says what to install, or how to start the job
		return
	}
	defer g.Close()
	t := tensor.Full(tensor.Float32, float64(g.Rank()+1), 2)
	if err := g.AllReduce(ctx, dist.Sum, t); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("rank", g.Rank(), "of", g.Size(), t)
	// Output: rank 0 of 1 tensor([1., 1.])
}

var relay = shoal.Register("relay", func(ctx context.Context, rank int, g *dist.Group) error {
	defer g.Close()
	if err := g.Join(rank); err != nil {
		return err
	}
	t := tensor.Full(tensor.Float32, float64(10*rank), 2)
	if rank == 0 {
		return g.Send(ctx, 1, 0, t.AddScalarInPlace(1))
	}
	from, err := g.Recv(ctx, dist.AnyRank, 0, t)
	fmt.Println(t, "from rank", from)
	return err
})

func ExampleGroup_Send() {
	g, err := dist.NewGroup(2)
	if err != nil {
		panic(err)
	}
	defer g.Close()
	if err := relay.Spawn(context.Background(), 2, g); err != nil {
		panic(err)
	}
	// Output: tensor([1., 1.]) from rank 0
}

var overlap = shoal.Register("overlap", func(ctx context.Context, rank int, g *dist.Group) error {
	defer g.Close()
	if err := g.Join(rank); err != nil {
		return err
	}
	t := tensor.Full(tensor.Float32, float64(rank+1), 2)
	var work *dist.Work = g.Async(ctx, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, t) })
	// What needs no sum is done here, and t is left alone.
	if err := work.Wait(ctx); err != nil {
		return err
	}
	if rank == 0 {
		fmt.Println(t)
	}
	return g.Barrier(ctx)
})

func ExampleGroup_Async() {
	g, err := dist.NewGroup(2)
	if err != nil {
		panic(err)
	}
	defer g.Close()
	if err := overlap.Spawn(context.Background(), 2, g); err != nil {
		panic(err)
	}
	// Output: tensor([3., 3.])
}

var pairs = shoal.Register("pairs", func(ctx context.Context, rank int, g *dist.Group) error {
	defer g.Close()
	if err := g.Join(rank); err != nil {
		return err
	}
	first, err := g.NewGroup(ctx, 0, 1) // all ranks make the call
	if err != nil {
		return err
	}
	defer first.Close()
	if first.Rank() < 0 {
		return nil // this one is no member
	}
	names, err := dist.AllGatherValues(ctx, first, fmt.Sprint("rank ", rank))
	if rank == 0 {
		fmt.Println(names)
	}
	return err
})

func ExampleGroup_NewGroup() {
	g, err := dist.NewGroup(3)
	if err != nil {
		panic(err)
	}
	defer g.Close()
	if err := pairs.Spawn(context.Background(), 3, g); err != nil {
		panic(err)
	}
	// Output: [rank 0 rank 1]
}

var distributed = shoal.Register("distributed", func(ctx context.Context, rank int, g *dist.Group) error {
	defer g.Close()
	if err := g.Join(rank); err != nil {
		return err
	}
	net, err := dist.NewDistributedDataParallel(ctx, g, nn.NewLinear(2, 1, nil), dist.DDPOptions{})
	if err != nil {
		return err
	}
	x := tensor.Full(tensor.Float32, float64(rank), 4, 2) // this rank's part of the batch
	if err := net.Backward(ctx, autograd.Mean(net.Forward(autograd.Const(x)))); err != nil {
		return err
	}
	if rank == 0 {
		fmt.Println(net.Module.Weight.Grad) // the mean over the ranks
	}
	return g.Barrier(ctx)
})

func ExampleDistributedDataParallel() {
	g, err := dist.NewGroup(2)
	if err != nil {
		panic(err)
	}
	defer g.Close()
	if err := distributed.Spawn(context.Background(), 2, g); err != nil {
		panic(err)
	}
	// Output: tensor([[0.5000, 0.5000]])
}

// Buckets of one MiB, for a rank with its own buffers.
func ExampleDDPOptions() {
	ctx := context.Background()
	g, err := dist.NewGroup(1)
	if err != nil {
		panic(err)
	}
	defer g.Close()
	if err := g.Join(0); err != nil {
		panic(err)
	}
	opts := dist.DDPOptions{BucketBytes: 1 << 20, OwnBuffers: true}
	net, err := dist.NewDistributedDataParallel(ctx, g, nn.NewLinear(2, 1, nil), opts)
	if err != nil {
		panic(err)
	}
	x := autograd.Const(tensor.Ones(tensor.Float32, 4, 2))
	if err := net.Backward(ctx, autograd.Mean(net.Forward(x))); err != nil {
		panic(err)
	}
	fmt.Println(net.Module.Weight.Grad)
	// Output: tensor([[1., 1.]])
}

var squares = dist.RegisterLoss("squares", func(s *autograd.Scope, l *nn.Linear, batch []*tensor.Tensor) *autograd.Var {
	return nn.MSELoss{}.Of(l.Forward(s.Const(batch[0])), batch[1])
})

// Two processes compute the gradients of one network, each those of its half of the batch.
func ExampleDataParallel() {
	ctx := context.Background()
	l := nn.NewLinear(1, 1, nil)
	l.Weight.T.Zero()
	l.Bias.T.Zero()
	d, err := dist.NewDataParallel(ctx, squares, l, dist.DataParallelOptions{Process: shoal.Options{Workers: 2}})
	if err != nil {
		panic(err)
	}
	defer nn.Close(l)
	defer d.Close()
	x, y := tensor.FromSlice([]float32{1, 2}, 2, 1), tensor.FromSlice([]float32{3, 6}, 2, 1)
	loss, err := d.Backward(ctx, x, y)
	fmt.Println(loss, l.Weight.Grad.Item(), err)
	// Output: 22.5 -15 <nil>
}

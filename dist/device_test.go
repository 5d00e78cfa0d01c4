package dist_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// devices returns one for each of size ranks but the last, which is on the host.
func devices(size int) []tensor.Device {
	all := make([]tensor.Device, size)
	for r := range size - 1 {
		all[r] = devicetest.New(fmt.Sprintf("test:%d", r))
	}
	return all
}

func TestGroup_CollectivesOfTensorsOnDevices(t *testing.T) {
	collectives(t, devices(3), 140_001, tensor.Float32)
	one := devicetest.New("test:0")
	collectives(t, []tensor.Device{one, one, one}, 1001, tensor.Float32, tensor.Int64, tensor.BFloat16)
}

func TestGroup_WantsContiguousTensorsOnADevice(t *testing.T) {
	groups := handles(t, 2)
	for _, err := range together(groups, func(g *dist.Group) error {
		return g.AllReduce(testutil.Context(t), dist.Sum, devicetest.On(t, devicetest.New("test:0"), ones(2, 3)).T())
	}) {
		if !errors.Is(err, dist.ErrTensor) {
			t.Errorf("%v", err)
		}
	}
}

// collectives has a rank for each device, with n elements there.
func collectives(t *testing.T, there []tensor.Device, n int, dtypes ...tensor.DType) {
	size := len(there)
	groups := handles(t, size)
	on := func(dt tensor.DType, rank, n int) *tensor.Tensor {
		x := devicetest.On(t, there[rank], tensor.Cat(0, operand(dt, rank, 7), operand(dt, rank, n)))
		return x.Narrow(0, 7, n) // not from the first byte of its memory on
	}
	operands := func(dt tensor.DType) (all []*tensor.Tensor) {
		for r := range size {
			all = append(all, operand(dt, r, n))
		}
		return all
	}
	for _, dt := range dtypes {
		all(t, together(groups, func(g *dist.Group) error {
			rank, own := g.Rank(), there[g.Rank()]
			for _, op := range []dist.Op{dist.Sum, dist.Mean, dist.Max, dist.Min, dist.Prod} {
				if op == dist.Mean && dt == tensor.Int64 {
					continue
				}
				whole := serial(op, operands(dt))
				x := on(dt, rank, n)
				if err := g.AllReduce(testutil.Context(t), op, x); err != nil {
					return err
				}
				devicetest.Same(t, x, whole, 0)
				if x.Device() != own {
					t.Errorf("rank %d has the result on %v", rank, x.Device())
				}
				x = on(dt, rank, n)
				if err := g.Reduce(testutil.Context(t), 2, op, x); err != nil {
					return err
				}
				if rank != 2 {
					whole = operand(dt, rank, n)
				}
				devicetest.Same(t, x, whole, 0)
			}
			if err := g.Barrier(testutil.Context(t)); err != nil {
				return err
			}
			y := on(dt, rank, n)
			if err := g.Broadcast(testutil.Context(t), 1, y); err != nil {
				return err
			}
			devicetest.Same(t, y, operand(dt, 1, n), 0)
			gathered := devicetest.On(t, own, tensor.New(dt, size*n))
			if err := g.AllGather(testutil.Context(t), gathered, on(dt, rank, n)); err != nil {
				return err
			}
			devicetest.Same(t, gathered, tensor.Cat(0, operands(dt)...), 0)
			part := devicetest.On(t, own, tensor.New(dt, n/size))
			if err := g.ReduceScatter(testutil.Context(t), dist.Sum, part, on(dt, rank, n/size*size)); err != nil {
				return err
			}
			whole := serial(dist.Sum, []*tensor.Tensor{operand(dt, 0, n/size*size),
				operand(dt, 1, n/size*size), operand(dt, 2, n/size*size)})
			devicetest.Same(t, part, whole.Narrow(0, rank*(n/size), n/size), 0)
			return nil
		}))
		exchange(t, groups, dt, n,
			func(rank int, x *tensor.Tensor) *tensor.Tensor { return devicetest.On(t, there[rank], x) })
	}
}

func TestAverageGrads_OfRanksOnDevicesOfTheirOwn(t *testing.T) { trainRanks(t, devices(3)[:2]) }

// trainRanks has two ranks on two devices train as one process on the host does.
func trainRanks(t *testing.T, there []tensor.Device) {
	const steps, batch = 3, 8
	groups := handles(t, 2)
	want := newNet(1)
	take := func(n *net) {
		for p := range nn.Params(n) {
			if p.Grad != nil {
				p.T.AxpyInPlace(-0.1, p.Grad)
				p.ZeroGrad()
			}
		}
	}
	for i := range steps {
		want.loss(nil, samples(uint64(i), batch)).Backward()
		take(want)
	}
	all(t, together(groups, func(g *dist.Group) error {
		dev := there[g.Rank()]
		n := newNet(uint64(1 + g.Rank())) // that of rank 0 counts
		for p := range nn.Params(n) {
			p.T.Set(devicetest.On(t, dev, p.T))
		}
		if err := g.BroadcastParams(testutil.Context(t), 0, nn.Params(n)); err != nil {
			return err
		}
		sgd := optim.NewSGD(nn.Params(n), optim.SGDOptions{LR: 0.1})
		for i := range steps {
			var part []*tensor.Tensor
			for _, x := range samples(uint64(i), batch) {
				part = append(part, devicetest.On(t, dev, x.Narrow(0, g.Rank()*batch/2, batch/2)))
			}
			n.loss(autograd.NewScope(), part).Backward()
			if err := g.AverageGrads(testutil.Context(t), nn.Params(n)); err != nil {
				return err
			}
			sgd.Step()
			sgd.ZeroGrad()
		}
		i := 0
		var wants []*tensor.Tensor
		for p := range nn.Params(want) {
			wants = append(wants, p.T)
		}
		for p := range nn.Params(n) {
			devicetest.Same(t, p.T, wants[i], 1e-5)
			i++
		}
		return nil
	}))
}

func TestGroup_CallEndsWhereADeviceFails(t *testing.T) {
	groups := handles(t, 1)
	dev := devicetest.New("test:0")
	x := devicetest.On(t, dev, tensor.Ones(tensor.Float32, 3))
	broken := errors.New("broken")
	dev.Fail(broken)
	if err := groups[0].AllReduce(testutil.Context(t), dist.Sum, x); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

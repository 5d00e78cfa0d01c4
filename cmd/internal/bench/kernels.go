package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/internal/sys"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

var kernels = Suite{
	Name:   "kernels",
	Doc:    "matrix products and the layers of the MNIST net, in one thread, against gonum and a peer's library",
	peer:   "torch_train.py",
	groups: []func(context.Context, *environment) (group, error){productRows, layerRows},
}

// A job is a float32 computation that other libraries provide as well.
type job struct {
	name string
	cost int    // floating-point operations
	do   func() // our implementation
	// gonum's implementation. For a convolution it covers only the matrix products, with the
	// patches already extracted.
	gonum func()
	op    string // name in the peer's script
	args  []int
}

// repeatCount returns the number of repetitions of a computation in a round, so that the round
// takes about 10 ms. cost is the number of floating-point operations of one repetition.
func (h *environment) repeatCount(cost int) int { return max(1, h.scaleRounds(500_000_000/cost)) }

// measureFLOPS returns a probe of the floating-point operations per second of processor time.
// cost is their number in one call of do. The computation runs in one thread, regardless of
// gonum's threads, and processor time is hardly affected by other programs.
func (h *environment) measureFLOPS(cost int, do func()) *Probe {
	rounds := h.repeatCount(cost)
	return &Probe{Measure: func(context.Context) (float64, error) {
		return float64(cost) * float64(rounds) / cpuTime(rounds, do).Seconds(), nil
	}}
}

// cpuTime returns the processor time of this process for calling do rounds times with one kernel
// thread. It must not be called concurrently, because it sets the number of kernel threads of
// the process.
func cpuTime(rounds int, do func()) time.Duration {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	begin := sys.ProcessTime()
	for range rounds {
		do()
	}
	return max(sys.ProcessTime()-begin, 1)
}

func (h *environment) kernelRows(jobs []job, target Target) (cases []Case) {
	for _, j := range jobs {
		cases = append(cases, Case{
			Name: j.name, Unit: Flops, Ours: h.measureFLOPS(j.cost, j.do), Target: target,
			Rival: &Rival{"gonum", h.measureFLOPS(j.cost, j.gonum)},
			Peer:  &peerWork{op: j.op, Rounds: h.repeatCount(j.cost), Args: append([]int{j.cost}, j.args...)},
		})
	}
	return cases
}

func productRows(_ context.Context, h *environment) (group, error) {
	var jobs []job
	for _, n := range []int{256, 512, 1024} {
		jobs = append(jobs, gemmJob(fmt.Sprint("product_", n), false, false, n, n, n, false))
	}
	return group{rounds: 15, cases: h.kernelRows(jobs, timesPeer(0.85))}, nil
}

// layerRows returns rows of the matrix products of a training step of the MNIST network: each
// one alone, and all in sequence, which weights them by their cost.
func layerRows(_ context.Context, h *environment) (group, error) {
	jobs := append(convJobs("conv1", 1, 28, 10, false), convJobs("conv2", 10, 12, 20, true)...)
	for _, fc := range []struct {
		name    string
		in, out int
	}{{"fc1", 320, 50}, {"fc2", 50, 10}} {
		jobs = append(jobs,
			gemmJob(fc.name+"_forward", false, true, batch, fc.out, fc.in, false),
			gemmJob(fc.name+"_weights", true, false, fc.out, fc.in, batch, true),
			gemmJob(fc.name+"_input", false, false, batch, fc.in, fc.out, false))
	}
	all := job{name: "mnist_products", op: "all"}
	for _, j := range jobs {
		all.cost += j.cost
	}
	all.do = func() {
		for _, j := range jobs {
			j.do()
		}
	}
	all.gonum = func() {
		for _, j := range jobs {
			j.gonum()
		}
	}
	cases := h.kernelRows(append(jobs, all), nil)
	cases[len(cases)-1].Target = timesPeer(0.8)
	return group{rounds: 15, cases: cases}, nil
}

// batch is the number of images in a step.
const batch = 64

// noiseNumbers returns reproducible pseudorandom numbers in [-1, 1).
func noiseNumbers(n int) []float32 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

// gemmJob returns a job that multiplies an m×k matrix by a k×n matrix. transA and transB tell
// that a factor is stored transposed. If add is set, the product is added to the result matrix,
// which it replaces otherwise.
func gemmJob(name string, transA, transB bool, m, n, k int, add bool) job {
	a, b, c := noiseNumbers(m*k), noiseNumbers(k*n), make([]float32, m*n)
	lda, ldb, beta := k, n, float32(0)
	if transA {
		lda = m
	}
	if transB {
		ldb = k
	}
	if add {
		beta = 1
	}
	return job{
		name: name, cost: 2 * m * n * k,
		do: func() { kernel.Gemm(transA, transB, m, n, k, 1, a, lda, b, ldb, beta, c, n) },
		gonum: func() {
			gonum.Implementation{}.Sgemm(transposeFlag(transA), transposeFlag(transB), m, n, k, 1, a, lda, b, ldb,
				beta, c, n)
		},
		op: "product", args: []int{m, n, k, boolBit(transA), boolBit(transB), boolBit(add)},
	}
}

func transposeFlag(trans bool) blas.Transpose {
	if trans {
		return blas.Trans
	}
	return blas.NoTrans
}

func boolBit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// convJobs returns jobs for the 5×5 convolution of a batch of side×side images, from channels to
// out channels, and for the gradient of its filters. If images is set, the gradient of the
// images is included.
func convJobs(name string, channels, side, out int, images bool) []job {
	s := kernel.ConvShape{N: batch, C: channels, H: side, W: side, OutC: out, KH: 5, KW: 5, StrideH: 1, StrideW: 1}
	area, patch := s.OutH()*s.OutW(), channels*25
	x, w, b, y := noiseNumbers(batch*channels*side*side), noiseNumbers(out*patch), noiseNumbers(out),
		noiseNumbers(batch*out*area)
	dx, dw, db, columns := make([]float32, len(x)), make([]float32, len(w)), make([]float32, out),
		noiseNumbers(patch*area)
	scratch := new(kernel.Scratch)
	each := func(product func(y []float32)) func() {
		return func() {
			for i := range batch {
				product(y[i*out*area:])
			}
		}
	}
	cost, args := 2*batch*out*area*patch, []int{channels, side, out}
	g := gonum.Implementation{}
	jobs := []job{{
		name: name + "_forward", cost: cost, op: "conv_forward", args: args,
		do: func() { kernel.Conv2d(s, x, w, b, y, scratch) },
		gonum: each(func(y []float32) {
			g.Sgemm(blas.NoTrans, blas.NoTrans, out, area, patch, 1, w, patch, columns, area, 0, y, area)
		}),
	}, {
		name: name + "_filters", cost: cost, op: "conv_filters", args: args,
		do: func() { kernel.Conv2dBackward(s, x, w, y, nil, dw, db, scratch) },
		gonum: each(func(y []float32) {
			g.Sgemm(blas.NoTrans, blas.Trans, out, patch, area, 1, y, area, columns, area, 1, dw, patch)
		}),
	}}
	if images {
		jobs = append(jobs, job{
			name: name + "_images", cost: cost, op: "conv_images", args: args,
			do: func() { kernel.Conv2dBackward(s, x, w, y, dx, nil, nil, scratch) },
			gonum: each(func(y []float32) {
				g.Sgemm(blas.Trans, blas.NoTrans, patch, area, out, 1, w, patch, y, area, 0, columns, area)
			}),
		})
	}
	return jobs
}

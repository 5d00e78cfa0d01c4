package kernel_test

import "github.com/shoal-mp/shoal/internal/kernel"

// dense is a fully connected layer: y (rows×out) = x (rows×in)·wᵀ + b.
type dense struct {
	rows, in, out       int
	w, b, dw, db, y, dy []float32
}

func newDense(rows, in, out int) *dense {
	return &dense{rows, in, out, noise[float32](1, in*out), noise[float32](2, out), make([]float32, in*out),
		make([]float32, out),
		make([]float32, rows*out), make([]float32, rows*out)}
}

func (d *dense) forward(x []float32) {
	kernel.Gemm(false, true, d.rows, d.out, d.in, 1, x, d.in, d.w, d.in, 0, d.y, d.out)
	kernel.AddBias(d.rows, d.out, d.y, d.b)
}

func (d *dense) backward(x, dx []float32) {
	kernel.Gemm(true, false, d.out, d.in, d.rows, 1, d.dy, d.out, x, d.in, 1, d.dw, d.in)
	kernel.ColSum(d.rows, d.out, d.dy, d.db)
	kernel.Gemm(false, false, d.rows, d.in, d.out, 1, d.dy, d.out, d.w, d.in, 0, dx, d.in)
}

// mnist is the net of PyTorch's Hogwild example without dropout, as calls of kernels.
type mnist struct {
	c1, c2      layer[float32]
	p1, p2      []float32
	dp1, dp2    []float32
	at1, at2    []int32
	fc1, fc2    *dense
	logp, dlogp []float32
	target      []int64
	scratch     kernel.Scratch
	n           int
}

func newMNIST(n int) *mnist {
	s1, s2 := conv1, conv2
	s1.N, s2.N = n, n
	return &mnist{
		n: n, c1: newLayer[float32](s1), c2: newLayer[float32](s2), fc1: newDense(n, 320, 50), fc2: newDense(n, 50, 10),
		p1: make([]float32, n*1440), p2: make([]float32, n*320), dp1: make([]float32, n*1440),
		dp2: make([]float32, n*320),
		at1: make([]int32, n*1440), at2: make([]int32, n*320),
		logp: make([]float32, n*10), dlogp: make([]float32, n*10), target: make([]int64, n),
	}
}

func (m *mnist) forward() float32 {
	kernel.Conv2d(m.c1.s, m.c1.x, m.c1.w, m.c1.b, m.c1.y, &m.scratch)
	kernel.MaxPool2d(m.n, 10, 24, 24, 2, 2, 2, 2, 0, 0, m.c1.y, m.p1, m.at1)
	kernel.Relu(m.p1, m.p1)
	kernel.Conv2d(m.c2.s, m.p1, m.c2.w, m.c2.b, m.c2.y, &m.scratch)
	kernel.MaxPool2d(m.n, 20, 8, 8, 2, 2, 2, 2, 0, 0, m.c2.y, m.p2, m.at2)
	kernel.Relu(m.p2, m.p2)
	m.fc1.forward(m.p2)
	kernel.Relu(m.fc1.y, m.fc1.y)
	m.fc2.forward(m.fc1.y)
	kernel.LogSoftmax(m.n, 10, m.fc2.y, m.logp)
	return kernel.NLLLoss(m.n, 10, m.logp, m.target) / float32(m.n)
}

func (m *mnist) backward() {
	kernel.NLLLossBackward(m.n, 10, m.target, 1/float32(m.n), m.dlogp)
	kernel.LogSoftmaxBackward(m.n, 10, m.logp, m.dlogp, m.fc2.dy)
	m.fc2.backward(m.fc1.y, m.fc1.dy)
	kernel.ReluBackward(m.fc1.y, m.fc1.dy, m.fc1.dy)
	m.fc1.backward(m.p2, m.dp2)
	kernel.ReluBackward(m.p2, m.dp2, m.dp2)
	kernel.MaxPool2dBackward(m.n, 20, 8, 8, 2, 2, 2, 2, 0, 0, m.dp2, m.at2, m.c2.dy)
	kernel.Conv2dBackward(m.c2.s, m.p1, m.c2.w, m.c2.dy, m.dp1, m.c2.dw, m.c2.db, &m.scratch)
	kernel.ReluBackward(m.p1, m.dp1, m.dp1)
	kernel.MaxPool2dBackward(m.n, 10, 24, 24, 2, 2, 2, 2, 0, 0, m.dp1, m.at1, m.c1.dy)
	kernel.Conv2dBackward(m.c1.s, m.c1.x, m.c1.w, m.c1.dy, nil, m.c1.dw, m.c1.db, &m.scratch)
}

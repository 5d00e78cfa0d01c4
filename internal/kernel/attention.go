package kernel

import "math"

// An Attention is so many heads, each of which has Q queries, K keys and K values, the first two of
// D numbers and the last of V: the output of a query is the mean of the values, weighted by the
// softmax of Scale times its products with the keys.
type Attention struct {
	Heads, Q, K, D, V int
	Scale             float64
	Causal            bool // query i sees the keys up to i alone
}

// Blocks of queries and keys whose products are there at the same time: no matrix of all queries
// and keys is.
const (
	queryBlock = 64
	keyBlock   = 128
)

// What an attention borrows.
const (
	scoresOf = images
	keysOf   = filters
	valuesOf = firsts
	rowsOf   = seconds
)

// Attend overwrites out (Heads, Q, V) with the attention of q (Heads, Q, D) to k (Heads, K, D) and
// v (Heads, K, V), and logs (Heads, Q) with the logarithms of the sums of exponentials. bias
// returns what is added to the products of a head's query, K numbers, or nil for none; it may be
// nil itself. A query that sees nothing, or only what is -∞, has zeros as its output. Heads are
// divided between Threads goroutines.
func Attend[F Float](a Attention, q, k, v []F, bias func(head, query int) []F, out []F, logs []float64) {
	if parts := a.parts(); parts > 1 {
		fork(parts, a.Heads, func(_, lo, hi int) { attend(a, lo, hi, q, k, v, bias, out, logs) })
	} else {
		attend(a, 0, a.Heads, q, k, v, bias, out, logs)
	}
}

// attend is Attend for some heads.
func attend[F Float](a Attention, lo, hi int, q, k, v []F, bias func(head, query int) []F, out []F,
	logs []float64) {
	space := spaces.Get().(*Scratch)
	defer spaces.Put(space)
	for h := lo; h < hi; h++ {
		t := headOf(a, h, q, k, v, bias, logs, space)
		t.values = blocksOf(false, a.K, a.V, t.v, space, valuesOf)
		for i := 0; i < a.Q; i += queryBlock {
			t.attend(i, min(queryBlock, a.Q-i), out[h*a.Q*a.V:])
		}
	}
}

// AttendBackward computes the gradients of [Attend] from what it was given and what it found, and
// dy, the gradient of out. dq, dk and dv are overwritten. bias gets none, unless dbias takes it:
// the gradient of products of a head's query, from a key on.
func AttendBackward[F Float](a Attention, q, k, v []F, bias func(head, query int) []F, out []F,
	logs []float64, dy, dq, dk, dv []F, dbias func(head, query, key int, d []F)) {
	if parts := a.parts(); parts > 1 && dbias == nil { // heads may share a bias
		fork(parts, a.Heads, func(_, lo, hi int) {
			attendBackward(a, lo, hi, q, k, v, bias, out, logs, dy, dq, dk, dv, nil)
		})
	} else {
		attendBackward(a, 0, a.Heads, q, k, v, bias, out, logs, dy, dq, dk, dv, dbias)
	}
}

// attendBackward is AttendBackward for some heads.
func attendBackward[F Float](a Attention, lo, hi int, q, k, v []F, bias func(head, query int) []F, out []F,
	logs []float64, dy, dq, dk, dv []F, dbias func(head, query, key int, d []F)) {
	space := spaces.Get().(*Scratch)
	defer spaces.Put(space)
	for h := lo; h < hi; h++ {
		t := headOf(a, h, q, k, v, bias, logs, space)
		t.values = blocksOf(true, a.K, a.V, t.v, space, valuesOf)
		g := headGradient[F]{t, borrow[F](space, gradients, queryBlock*keyBlock),
			blocksOf(false, a.K, a.D, t.k, space, rowsOf), out[h*a.Q*a.V:], dy[h*a.Q*a.V:],
			dq[h*a.Q*a.D:][:a.Q*a.D], dk[h*a.K*a.D:][:a.K*a.D], dv[h*a.K*a.V:][:a.K*a.V], dbias}
		clear(g.dq)
		clear(g.dk)
		clear(g.dv)
		for i := 0; i < a.Q; i += queryBlock {
			g.block(i, min(queryBlock, a.Q-i))
		}
	}
}

// parts is how many goroutines the heads are worth.
func (a Attention) parts() int { return workers(a.Heads, a.Heads*a.Q*a.K*(a.D+a.V)) }

// A head is one of an attention, with its scores of a block of queries and keys.
type head[F Float] struct {
	Attention
	number       int
	q, k, v      []F
	keys, values blocks[F] // the keys as columns, the values as rows
	bias         func(head, query int) []F
	logs         []float64
	scores       []F
}

func headOf[F Float](a Attention, h int, q, k, v []F, bias func(head, query int) []F, logs []float64,
	space *Scratch) head[F] {
	t := head[F]{Attention: a, number: h, q: q[h*a.Q*a.D:], k: k[h*a.K*a.D:], v: v[h*a.K*a.V:], bias: bias,
		logs: logs[h*a.Q:]}
	t.scores = borrow[F](space, scoresOf, queryBlock*keyBlock)
	t.keys = blocksOf(true, a.K, a.D, t.k, space, keysOf)
	return t
}

// blocks are factors of so many rows each, one behind the other, which are the columns of a factor
// if trans says so.
type blocks[F Float] struct {
	trans      bool
	rows, cols int
	width      int // of a panel
	data       []F
}

// blocksOf packs x (rows×cols).
func blocksOf[F Float](trans bool, rows, cols int, x []F, space *Scratch, i slot) blocks[F] {
	data := borrow[F](space, i, columns(rows, keyBlock)*columns(cols, portableLanes))
	b := blocks[F]{trans, rows, cols, inner[F]().panelWidth(), data}
	for j := 0; j < rows; j += keyBlock {
		f := b.at(j)
		factorOf(trans, f.n, f.k, x[j*cols:], cols, f.data, space)
	}
	return b
}

// at returns the block whose first row is j.
func (b *blocks[F]) at(j int) factor[F] {
	f := factor[F]{n: b.cols, k: min(keyBlock, b.rows-j), width: b.width}
	whole := room(b.cols, keyBlock)
	if b.trans {
		f.n, f.k, whole = f.k, f.n, room(keyBlock, b.cols)
	}
	f.data = b.data[j/keyBlock*whole:]
	return f
}

// seen is up to which key a block of queries, the last of which is the given one, sees any.
func (a Attention) seen(last int) int {
	if a.Causal {
		return min(a.K, last+1)
	}
	return a.K
}

// score computes the scores of m queries from i on with n keys from j on, n to a row. Those that
// are not seen are -∞.
func (t *head[F]) score(i, m, j, n int) {
	t.keys.at(j).product(m, n, t.D, F(t.Scale), t.q[i*t.D:], t.D, false, t.scores, n)
	for r := range m {
		row := t.scores[r*n:][:n]
		if t.bias != nil {
			if b := t.bias(t.number, i+r); b != nil {
				Add(row, b[j:][:n], row)
			}
		}
		if from := i + r + 1 - j; t.Causal && from < n {
			hide(row[max(0, from):])
		}
	}
}

func hide[F Float](scores []F) {
	none := F(math.Inf(-1))
	for c := range scores {
		scores[c] = none
	}
}

// attend computes the outputs of m queries from i on, keys a block at a time: what was added up by
// the largest score so far shrinks where a larger one is found.
func (t *head[F]) attend(i, m int, out []F) {
	var largest, sum [queryBlock]F
	for r := range m {
		largest[r] = F(math.Inf(-1))
	}
	clear(out[i*t.V:][:m*t.V])
	seen := t.seen(i + m - 1)
	for j := 0; j < seen; j += keyBlock {
		n := min(keyBlock, seen-j)
		t.score(i, m, j, n)
		for r := range m {
			row := t.scores[r*n:][:n]
			top := max(largest[r], Largest(row))
			if math.IsInf(float64(top), -1) { // nothing is seen yet
				clear(row)
				continue
			}
			fresh := expTo(top, row, row)
			if shrink := F(math.Exp(float64(largest[r] - top))); shrink != 1 {
				sum[r] *= shrink
				Scale(shrink, out[(i+r)*t.V:][:t.V])
			}
			largest[r], sum[r] = top, sum[r]+fresh
		}
		t.values.at(j).product(m, t.V, n, 1, t.scores, n, true, out[i*t.V:], t.V)
	}
	for r := range m {
		t.logs[i+r] = float64(largest[r]) + math.Log(float64(sum[r]))
		if sum[r] != 0 {
			Scale(1/sum[r], out[(i+r)*t.V:][:t.V])
		}
	}
}

// A headGradient computes the gradients of one.
type headGradient[F Float] struct {
	head[F]
	slopes     []F
	rows       blocks[F] // of keys
	out, dy    []F
	dq, dk, dv []F
	dbias      func(head, query, key int, d []F)
}

// block adds the gradients by m queries from i on. The softmax is computed again, from the scores
// and the logarithms of the sums.
func (g *headGradient[F]) block(i, m int) {
	var along [queryBlock]F
	for r := range m {
		along[r] = Dot(g.dy[(i+r)*g.V:][:g.V], g.out[(i+r)*g.V:][:g.V])
	}
	seen := g.seen(i + m - 1)
	for j := 0; j < seen; j += keyBlock {
		n := min(keyBlock, seen-j)
		g.score(i, m, j, n)
		g.values.at(j).product(m, n, g.V, 1, g.dy[i*g.V:], g.V, false, g.slopes, n)
		for r := range m {
			row, d := g.scores[r*n:][:n], g.slopes[r*n:][:n]
			if log := g.logs[i+r]; math.IsInf(log, -1) {
				clear(row)
			} else {
				expTo(F(log), row, row)
			}
			Shift(-along[r], d, d)
			Mul(d, row, d)
			if g.dbias != nil {
				g.dbias(g.number, i+r, j, d)
			}
		}
		serial(true, false, n, g.V, m, 1, g.scores, n, g.dy[i*g.V:], g.V, true, g.dv[j*g.V:], g.V)
		g.rows.at(j).product(m, g.D, n, F(g.Scale), g.slopes, n, true, g.dq[i*g.D:], g.D)
		serial(true, false, n, g.D, m, F(g.Scale), g.slopes, n, g.q[i*g.D:], g.D, true, g.dk[j*g.D:], g.D)
	}
}

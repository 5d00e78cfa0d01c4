package kernel

import "math"

// A Norm is rows of Per·Run elements, each of which is moved and scaled to mean 0 and variance 1, and then by weights and biases: Groups·Per of each,
// of which row r has the Per from (r modulo Groups)·Per on, each for Run elements. A layer norm has one group and runs of 1, a group norm a row for each
// group of an example, and runs as long as a channel.
type Norm struct {
	Rows, Groups, Per, Run int
	Eps                    float64 // added to variances
}

func (n Norm) cols() int { return n.Per * n.Run }

// params returns where the weights of row r begin and end.
func (n Norm) params(r int) (lo, hi int) {
	lo = r % n.Groups * n.Per
	return lo, lo + n.Per
}

// Normalize overwrites y with the rows of x, moved and scaled, and means and scales (Rows) with what they were moved back and scaled by. w and b may be
// nil, and y may be x. Rows are divided between Threads goroutines.
func Normalize[F Float](n Norm, x, w, b, y []F, means, scales []float64) {
	cols := n.cols()
	n.divide(n.Rows, func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			to := y[r*cols:][:cols]
			means[r], scales[r] = standardize(n.Eps, x[r*cols:][:cols], to)
			affine(n, r, to, w, b)
		}
	})
}

// divide calls do for parts of things that all rows are divided into.
func (n Norm) divide(things int, do func(worker, lo, hi int)) {
	const cost = 16 // operations for an element
	if parts := workers(things, n.Rows*n.cols()*cost); parts > 1 {
		fork(parts, things, do)
	} else {
		do(0, 0, things)
	}
}

// standardize takes the mean from a row twice: the second one is of what rounding the first has left, which beside a mean that is much
// larger than the deviations would be seen.
func standardize[F Float](eps float64, x, y []F) (mean, scale float64) {
	count := float64(len(x))
	first := F(Sum64(x) / count)
	shiftTo(-first, x, y)
	left := Sum64(y) / count
	variance := max(float64(Dot(y, y))/count-left*left, 0) // NaN stays
	scale = 1 / math.Sqrt(variance+eps)
	Scale(F(scale), y)
	shiftTo(F(-left*scale), y, y)
	return float64(first) + left, scale
}

// restandardize is standardize by a mean and a scale that are known.
func restandardize[F Float](mean, scale float64, x, y []F) {
	first := F(mean)
	shiftTo(-first, x, y)
	Scale(F(scale), y)
	shiftTo(F((float64(first)-mean)*scale), y, y)
}

// shiftTo overwrites y with x+alpha.
func shiftTo[F Float](alpha F, x, y []F) {
	for i, n := range short(len(x)) {
		inner[F]().shift(n, alpha, &x[i], &y[i])
	}
}

// affine multiplies row r by its weights and adds its biases.
func affine[F Float](n Norm, r int, y, w, b []F) {
	lo, hi := n.params(r)
	if n.Run > 1 {
		for p := lo; p < hi; p++ {
			run := y[(p-lo)*n.Run:][:n.Run]
			if w != nil {
				Scale(w[p], run)
			}
			if b != nil {
				shiftTo(b[p], run, run)
			}
		}
		return
	}
	if w != nil {
		Mul(y, w[lo:hi], y)
	}
	if b != nil {
		Add(y, b[lo:hi], y)
	}
}

// NormalizeBackward computes the gradients of [Normalize] from x, w and what it found, and dy, the gradient of its output: dx is overwritten, dw
// and db are added to. Those that are nil are skipped. dx is neither x nor dy. Sums over rows are the same however many goroutines there are.
func NormalizeBackward[F Float](n Norm, x, w, dy []F, means, scales []float64, dx, dw, db []F, scratch *Scratch) {
	cols, params, parts := n.cols(), n.Groups*n.Per, groups(n.Rows)
	if cols == 0 {
		return
	}
	sums := borrow[F](scratch, gradients, parts*2*params)
	clear(sums)
	room := borrow[F](scratch, images, parts*2*cols)
	n.divide(parts, func(_, from, to int) {
		for part := from; part < to; part++ {
			g := normGradient[F]{n, w, room[part*2*cols:][:2*cols], sums[part*2*params:][:2*params]}
			for r := part * n.Rows / parts; r < (part+1)*n.Rows/parts; r++ {
				at := r * cols
				g.row(r, means[r], scales[r], x[at:][:cols], dy[at:][:cols], piece(dx, at, cols))
			}
		}
	})
	for part := range parts {
		own := sums[part*2*params:][:2*params]
		if dw != nil {
			Axpy(1, own[:params], dw[:params])
		}
		if db != nil {
			Axpy(1, own[params:], db[:params])
		}
	}
}

// piece returns n elements of x from at on, or nil.
func piece[F Float](x []F, at, n int) []F {
	if x == nil {
		return nil
	}
	return x[at:][:n]
}

// A normGradient goes over rows whose sums are its own.
type normGradient[F Float] struct {
	Norm
	w    []F
	room []F // for two rows
	sums []F // of the gradients of weights and of biases
}

// row takes from the gradient of what row r was before its weights the mean and the part along the row, which moving and scaling have made constant.
func (g normGradient[F]) row(r int, mean, scale float64, x, dy, dx []F) {
	cols := len(x)
	y, product := g.room[:cols], g.room[cols:]
	restandardize(mean, scale, x, y)
	Mul(dy, y, product)
	g.addRuns(r, product, g.sums[:len(g.sums)/2])
	g.addRuns(r, dy, g.sums[len(g.sums)/2:])
	if dx == nil {
		return
	}
	copy(dx, dy)
	affine(g.Norm, r, dx, g.w, nil)
	count := F(cols)
	sum, along := F(Sum64(dx))/count, Dot(dx, y)/count
	Axpy(-along, y, dx)
	shiftTo(-sum, dx, dx)
	Scale(F(scale), dx)
}

// addRuns adds the elements of row r to the sums that they belong to.
func (g normGradient[F]) addRuns(r int, x, sums []F) {
	lo, hi := g.params(r)
	if g.Run == 1 {
		Axpy(1, x, sums[lo:hi])
		return
	}
	for p := lo; p < hi; p++ {
		sums[p] += Sum(x[(p-lo)*g.Run:][:g.Run])
	}
}

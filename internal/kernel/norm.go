package kernel

import "math"

// Norm is the geometry of a layer norm or group norm. Each of the Rows of Per·Run elements is
// normalised to mean 0 and variance 1, and then multiplied by weights and shifted by biases. There
// are Groups·Per weights and biases. Row r uses the Per of them that begin at (r mod Groups)·Per,
// each for Run elements. A layer norm has one group and a Run of 1. A group norm has a row for each
// group of an example, and Run is the size of a channel.
type Norm struct {
	Rows, Groups, Per, Run int
	Eps                    float64 // added to the variance
}

func (n Norm) cols() int { return n.Per * n.Run }

// weightRange returns the range of the weights of row r, from lo up to, but not including, hi.
func (n Norm) weightRange(r int) (lo, hi int) {
	lo = r % n.Groups * n.Per
	return lo, lo + n.Per
}

// Normalize overwrites y with the normalised rows of x. It overwrites means and scales (Rows) with
// the mean and the factor of each row, which [NormalizeBackward] needs. w and b may be nil, and y
// may be x. Rows are divided between [Threads] goroutines.
func Normalize[F Float](n Norm, x, w, b, y []F, means, scales []float64) {
	if parts := n.workerCount(n.Rows); parts > 1 {
		runRanges(parts, n.Rows, func(_, lo, hi int) { normalizeRows(n, lo, hi, x, w, b, y, means, scales) })
	} else {
		normalizeRows(n, 0, n.Rows, x, w, b, y, means, scales)
	}
}

func normalizeRows[F Float](n Norm, lo, hi int, x, w, b, y []F, means, scales []float64) {
	cols := n.cols()
	for r := lo; r < hi; r++ {
		to := y[r*cols:][:cols]
		means[r], scales[r] = normalize(n, r, x[r*cols:][:cols], w, b, to)
	}
}

// workerCount returns the number of goroutines that are worthwhile for all rows, if they are
// divided into the given number of parts.
func (n Norm) workerCount(things int) int {
	const cost = 16 // operations per element
	return workerCount(things, n.Rows*n.cols()*cost)
}

// normalize overwrites y with x, row r, normalised, weighted by w and shifted by b, and returns
// the mean of the row and the factor that makes its variance 1. It subtracts the mean in two
// passes. The second pass removes the rounding error of the first one, which would matter if
// the mean is much larger than the deviations.
func normalize[F Float](n Norm, r int, x, w, b, y []F) (mean, scale float64) {
	count := float64(len(x))
	first := F(Sum64(x) / count)
	sum, squares := centreTo(first, x, y)
	left := sum / count
	variance := max(squares/count-left*left, 0) // clamp rounding errors; NaN stays NaN
	scale = 1 / math.Sqrt(variance+n.Eps)
	lo, hi := n.weightRange(r)
	if n.Run == 1 && w != nil && b != nil {
		w, b := w[lo:hi], b[lo:hi]
		for i, m := range shortPieces(len(y)) {
			loopsFor[F]().affine(m, F(scale), F(-left*scale), &w[i], &b[i], &y[i])
		}
	} else {
		Scale(F(scale), y)
		Shift(F(-left*scale), y, y)
		scaleAndShift(n, r, y, w, b)
	}
	return float64(first) + left, scale
}

// centreTo overwrites y with x-shift, and returns the sum of y and the sum of its squares.
func centreTo[F Float](shift F, x, y []F) (sum, squares float64) {
	for i, n := range shortPieces(len(x)) {
		s, q := loopsFor[F]().centre(n, shift, &x[i], &y[i])
		sum, squares = sum+float64(s), squares+float64(q)
	}
	return sum, squares
}

// scaleAndShift multiplies y, row r, by its weights and adds its biases, in place. w and b may
// be nil.
func scaleAndShift[F Float](n Norm, r int, y, w, b []F) {
	lo, hi := n.weightRange(r)
	if n.Run > 1 {
		for p := lo; p < hi; p++ {
			run := y[(p-lo)*n.Run:][:n.Run]
			if w != nil {
				Scale(w[p], run)
			}
			if b != nil {
				Shift(b[p], run, run)
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

// NormalizeBackward computes the gradients of [Normalize]. x, w, means and scales must be as
// after Normalize; dy is the gradient of its output. It overwrites dx, and adds to dw and db.
// Each of them may be nil and is then skipped; w may be nil as well. dx must not overlap x or
// dy. The result does not depend on the number of goroutines.
func NormalizeBackward[F Float](n Norm, x, w, dy []F, means, scales []float64, dx, dw, db []F, scratch *Scratch) {
	cols, params, parts := n.cols(), n.Groups*n.Per, imageGroups(n.Rows)
	if cols == 0 {
		return
	}
	sums := borrowSlice[F](scratch, gradients, parts*2*params)
	clear(sums)
	room := borrowSlice[F](scratch, images, parts*3*cols)
	all := normGradients[F]{n, parts, x, w, dy, dx, means, scales, room, sums}
	if goroutines := n.workerCount(parts); goroutines > 1 {
		shared := all // copied only here, because goroutines make it escape to the heap
		runRanges(goroutines, parts, func(_, from, to int) { shared.computeParts(from, to) })
	} else {
		all.computeParts(0, parts)
	}
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

// normGradients computes the gradients of all rows, divided into groups. Each group has its own
// part of room and sums, so groups may be computed concurrently.
type normGradients[F Float] struct {
	Norm
	groups        int
	x, w, dy, dx  []F
	means, scales []float64
	room, sums    []F
}

func (a normGradients[F]) computeParts(from, to int) {
	cols, params := a.cols(), a.Groups*a.Per
	for part := from; part < to; part++ {
		g := normGradient[F]{Norm: a.Norm, w: a.w, row: a.room[part*3*cols:][:3*cols],
			sums: a.sums[part*2*params:][:2*params]}
		g.setOnes()
		for r := part * a.Rows / a.groups; r < (part+1)*a.Rows/a.groups; r++ {
			at := r * cols
			g.add(r, a.means[r], a.scales[r], a.x[at:][:cols], a.dy[at:][:cols], sliceOrNil(a.dx, at, cols))
		}
	}
}

// sliceOrNil returns n elements of x from index at, or nil if x is nil.
func sliceOrNil[F Float](x []F, at, n int) []F {
	if x == nil {
		return nil
	}
	return x[at:][:n]
}

// normGradient accumulates the gradients of a range of rows in its own sums.
type normGradient[F Float] struct {
	Norm
	w []F
	// row holds a row of weights, and of their gradients and the gradients of biases. It is used if
	// the parameters of a row must be expanded to its shape.
	row  []F
	sums []F // gradients of weights, then of biases
}

// setOnes sets the expanded weights in g.row to 1, for the case without weights.
func (g *normGradient[F]) setOnes() {
	for i := range g.row[:g.cols()] {
		g.row[i] = 1
	}
}

// add adds the gradients of the parameters of row r to g.sums, and overwrites dx with the
// gradient of the row unless it is nil. The gradient before the weights is projected: its mean
// and its component along the normalised row are removed, because normalisation keeps these
// constant.
func (g *normGradient[F]) add(r int, mean, scale float64, x, dy, dx []F) {
	w, dw, db := g.expandWeights(r)
	first := F(mean)
	left := F((float64(first) - mean) * scale)
	var sum, along F
	for i, n := range shortPieces(len(x)) {
		s, a := loopsFor[F]().normSums(n, first, F(scale), left, &x[i], &dy[i], &w[i], &dw[i], &db[i])
		sum, along = sum+s, along+a
	}
	if g.Run > 1 {
		g.addRuns(r, dw, g.sums[:len(g.sums)/2])
		g.addRuns(r, db, g.sums[len(g.sums)/2:])
	}
	if dx == nil {
		return
	}
	count := F(len(x))
	for i, n := range shortPieces(len(x)) {
		loopsFor[F]().normSlope(n, first, F(scale), left, sum/count, along/count, &x[i], &dy[i], &w[i], &dx[i])
	}
}

// expandWeights returns the weights of row r, one per element, and the slices to which the
// gradients of its weights and biases must be added. They may share memory with g.w, g.row and
// g.sums. If Run is above 1, the caller must then call [normGradient.addRuns] for dw and db.
func (g *normGradient[F]) expandWeights(r int) (w, dw, db []F) {
	lo, hi := g.weightRange(r)
	cols, half := g.cols(), len(g.sums)/2
	w, dw, db = g.row[:cols], g.sums[lo:hi], g.sums[half+lo:half+hi]
	if g.Run > 1 {
		dw, db = g.row[cols:2*cols], g.row[2*cols:]
		clear(dw)
		clear(db)
	}
	switch {
	case g.w != nil && g.Run == 1:
		w = g.w[lo:hi]
	case g.w != nil:
		for p := lo; p < hi; p++ {
			run := w[(p-lo)*g.Run:][:g.Run]
			for i := range run {
				run[i] = g.w[p]
			}
		}
	}
	return w, dw, db
}

// addRuns adds the sum of each run of x, the expanded gradients of row r, to sums.
func (g *normGradient[F]) addRuns(r int, x, sums []F) {
	lo, hi := g.weightRange(r)
	for p := lo; p < hi; p++ {
		sums[p] += Sum(x[(p-lo)*g.Run:][:g.Run])
	}
}

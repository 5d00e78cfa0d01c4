package kernel

// A convolution with dilation is computed with im2col: the product of the filters and a matrix of
// patches, for each image and channel group. For each channel and element of the filters, the
// matrix has a row of the pixels at this element.

func dilatedConv2d[F Float](g *geometry, x, w, bias, y []F, scratch *Scratch) {
	columns := borrowSlice[F](scratch, images, g.patch*g.area)
	for n := range g.N {
		g.eachGroup(func(image, filters, b, out int) {
			copyPatches(g, x[n*g.step+image:], columns)
			to := y[n*g.outStep+out:][:g.OutC*g.area]
			Gemm(false, false, g.OutC, g.area, g.patch, 1, w[filters:], g.patch, columns, g.area, 0, to, g.area)
			for o, v := range sliceFrom(bias, b)[:min(g.OutC, len(bias))] {
				Shift(v, to[o*g.area:][:g.area], to[o*g.area:][:g.area])
			}
		})
	}
}

func dilatedBackward[F Float](g *geometry, x, w, dy, dx, dw []F, scratch *Scratch) {
	columns := borrowSlice[F](scratch, images, g.patch*g.area)
	clear(dx)
	for n := range g.N {
		g.eachGroup(func(image, filters, _, out int) {
			dy := dy[n*g.outStep+out:]
			if dw != nil {
				copyPatches(g, x[n*g.step+image:], columns)
				Gemm(false, true, g.OutC, g.patch, g.area, 1, dy, g.area, columns, g.area, 1, dw[filters:], g.patch)
			}
			if dx != nil {
				Gemm(true, false, g.patch, g.area, g.OutC, 1, w[filters:], g.patch, dy, g.area, 0, columns, g.area)
				addPatches(g, columns, dx[n*g.step+image:])
			}
		})
	}
}

// copyPatches overwrites columns, a matrix of g.patch rows and g.area columns, with the patches
// of image x (im2col). Pixels outside the image are zeros.
func copyPatches[F Float](g *geometry, x, columns []F) {
	clear(columns)
	g.eachMeeting(func(pixel, place, n int) {
		from, to := x[pixel:], columns[place:][:n]
		for i := range to {
			to[i] = from[i*g.StrideW]
		}
	})
}

// addPatches adds each element of columns to the pixel of x from which [copyPatches] copies it
// (col2im).
func addPatches[F Float](g *geometry, columns, x []F) {
	g.eachMeeting(func(pixel, place, n int) {
		to := x[pixel:]
		for i, v := range columns[place:][:n] {
			to[i*g.StrideW] += v
		}
	})
}

// eachMeeting calls do for each element of the filters and each row of the output in which it
// sees pixels. The n pixels from offset pixel of the image on, StrideW apart, belong to the n
// elements from offset place of the matrix of patches on.
func (g *geometry) eachMeeting(do func(pixel, place, n int)) {
	for row := range g.patch {
		c, kh, kw := row/(g.KH*g.KW), row/g.KW%g.KH*max(1, g.DilationH), row%g.KW*max(1, g.DilationW)
		left, right := insideRange(g.W, g.outW, g.StrideW, g.PadW, kw)
		top, bottom := insideRange(g.H, g.outH, g.StrideH, g.PadH, kh)
		for oh := top; oh < bottom && left < right; oh++ {
			pixel := (c*g.H+oh*g.StrideH-g.PadH+kh)*g.W + left*g.StrideW - g.PadW + kw
			do(pixel, row*g.area+oh*g.outW+left, right-left)
		}
	}
}

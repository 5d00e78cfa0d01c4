package tensor

import (
	"encoding/binary"
	"math/bits"
)

// Nonzero returns the indices of the nonzero elements, as an Int64 tensor of shape (n, dimensions).
// Each row contains the indices of one element.
func Nonzero(t *Tensor) *Tensor { return backendOf(t).onHostCopy(t, nonzeroIndices) }

func nonzeroIndices(t *Tensor) *Tensor {
	all := make([]int, len(t.Shape()))
	for d := range all {
		all[d] = d
	}
	truth := t.rowsOf(Bool, all)
	mask := truth.contiguousBytes()
	out := Empty(Int64, countTrue(mask), len(t.Shape()))
	found, last := bytesAs[int64](out.contiguousBytes()), len(t.Shape())-1
	index := make([]int64, len(t.Shape()))
	for at := 0; len(found) > 0; at += t.Shape()[last] {
		n := placesOf(found, len(index), mask[at:][:t.Shape()[last]]) * len(index)
		for d, k := range index[:last] {
			for i := d; i < n; i += len(index) {
				found[i] = k
			}
		}
		found = found[n:]
		for d := last - 1; d >= 0; d-- {
			if index[d]++; int(index[d]) < t.Shape()[d] {
				break
			}
			index[d] = 0
		}
	}
	truth.releaseRows(t)
	return out
}

// placesOf finds the true elements of mask. It writes their indices to found, where they are step
// elements apart, and returns their number. It writes every index, but advances only if the element
// is true, because a branch would be unpredictable.
func placesOf(found []int64, step int, mask []byte) int {
	at := step - 1
	for i, yes := range mask {
		if at >= len(found) {
			break
		}
		found[at] = int64(i)
		at += step * int(boolToUint8(yes != 0))
	}
	return at / step
}

// countTrue returns the number of nonzero bytes. It processes eight bytes at a time: adding low
// sets the high bit of each nonzero byte.
func countTrue(mask []byte) (n int) {
	const low, high = 0x7f7f7f7f7f7f7f7f, 0x8080808080808080
	for ; len(mask) >= 8; mask = mask[8:] {
		w := binary.NativeEndian.Uint64(mask)
		n += bits.OnesCount64((w&low + low | w) & high)
	}
	for _, yes := range mask {
		n += int(boolToUint8(yes != 0))
	}
	return n
}

// MaskedSelect returns the elements of t where mask is true, in one dimension. mask must be Bool. t
// and mask are broadcast.
func MaskedSelect(t, mask *Tensor) *Tensor {
	mask.requireDType(Bool)
	var room [3][2 * fewDims]int
	shape := broadcastInto(room[0][:0], t.Shape(), mask.Shape())
	if len(shape) == 0 {
		shape = append(shape, 1)
	}
	order := room[1][:0]
	for d := range shape {
		order = append(order, d)
	}
	x := t.borrowView(shape, t.appendBroadcastStrides(room[2][:0], shape), t.offset)
	m := mask.borrowView(shape, mask.appendBroadcastStrides(room[2][:0], shape), mask.offset)
	defer x.releaseView()
	defer m.releaseView()
	if commonDevice([]*Tensor{t, mask}) != nil {
		return Index(x.Reshape(-1), Nonzero(m.Reshape(-1)).Select(1, 0))
	}
	from, where := x.rowsOf(t.dtype, order), m.rowsOf(Bool, order)
	chosen := where.contiguousBytes()
	out := Empty(t.dtype, countTrue(chosen))
	bySize(t.dtype.Size(), selectChosen[uint8], selectChosen[uint16], selectChosen[uint32], selectChosen[uint64],
		selectChosen[complex128])(
		out.contiguousBytes(), from.contiguousBytes(), chosen)
	from.releaseRows(t)
	where.releaseRows(mask)
	return out
}

// selectChosen copies the elements of src where chosen is nonzero to dst, which must have room
// for exactly these. It writes every element, but advances only if it is chosen, to avoid a
// branch.
func selectChosen[T any](dst, src, chosen []byte) {
	d, s := bytesAs[T](dst), bytesAs[T](src)
	s = s[:len(chosen)]
	at := 0
	for i, yes := range chosen {
		if at >= len(d) {
			break
		}
		d[at] = s[i]
		at += int(boolToUint8(yes != 0))
	}
}

package ipc_test

import (
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// BenchmarkPutNew is a tensor of 1 MiB that is made, filled, put into a queue and got out of it, as
// a new program does it (empty), as a fast one does it (give), and without any Close (dropped).
func BenchmarkPutNew(b *testing.B) {
	const elements = 1 << 18
	for name, put := range map[string]func(b *testing.B, q *ipc.Queue[*tensor.Tensor]){
		"empty": func(b *testing.B, q *ipc.Queue[*tensor.Tensor]) {
			x := tensor.Empty(tensor.Float32, elements).Fill(1)
			testutil.NoError(b, q.Put(b.Context(), x))
			testutil.NoError(b, x.Close())
			testutil.NoError(b, testutil.Value(q.Get(b.Context()))(b).Close())
		},
		"give": func(b *testing.B, q *ipc.Queue[*tensor.Tensor]) {
			x := testutil.Value(tensor.EmptyShared(tensor.Float32, elements))(b).Fill(1)
			testutil.NoError(b, q.Put(b.Context(), x.Give()))
			testutil.NoError(b, testutil.Value(q.Get(b.Context()))(b).Close())
		},
		"dropped": func(b *testing.B, q *ipc.Queue[*tensor.Tensor]) {
			x := tensor.Empty(tensor.Float32, elements).Fill(1)
			testutil.NoError(b, q.Put(b.Context(), x))
			testutil.Value(q.Get(b.Context()))(b)
		},
	} {
		b.Run(name, func(b *testing.B) {
			q := newQueue[*tensor.Tensor](b, 4)
			for b.Loop() {
				put(b, q)
			}
		})
	}
}
